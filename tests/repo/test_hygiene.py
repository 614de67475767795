"""Nothing of the machine that a file was written on gets into the repository."""

import os
import re

import pytest

from repo.sources import ROOT, committed_files, name_of

REGISTRIES = ("py" + "pi.org", "python" + "hosted.org", "npm" + "js.", "deb." + "debian.org", "crates" + ".io")
MACHINE_PATH = re.compile(r"(?<![\w./-])/(work|root|tmp|opt/pypi)(?=[/\s\"'`),:;]|$)", re.MULTILINE)
NOBODY = re.compile(r"@[\w.-]*\.inva" + r"lid\b")
THIS_FILE = "tests/repo/test_hygiene.py"


def texts() -> list[tuple[str, str]]:
    found = []
    for path in committed_files():
        name = name_of(path)
        if name != THIS_FILE and path.suffix not in (".png", ".svg"):
            found.append((name, path.read_text(encoding="utf-8")))
    return found


def test_no_file_names_a_path_of_one_machine() -> None:
    assert [f"{name}: {match[0]}" for name, text in texts() for match in MACHINE_PATH.finditer(text)] == []


@pytest.mark.parametrize("host", REGISTRIES)
def test_no_file_names_a_package_registry(host: str) -> None:
    assert [name for name, text in texts() if host in text] == []


def test_no_file_names_people_who_do_not_exist() -> None:
    assert [f"{name}: {match[0]}" for name, text in texts() for match in NOBODY.finditer(text)] == []


def test_every_text_ends_with_a_newline_and_has_none_of_windows() -> None:
    assert [name for name, text in texts() if text and (not text.endswith("\n") or "\r" in text)] == []


@pytest.mark.parametrize("name", ["scripts/up", "scripts/test"])
def test_the_commands_of_the_readme_are_there_and_can_be_run(name: str) -> None:
    assert f"sh {name}" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert os.access(ROOT / name, os.X_OK)


@pytest.mark.parametrize("name", ["examples/luftpause.toml", "docs/reference/config.md", "requirements/dev.txt"])
def test_what_the_tests_and_scripts_read_is_not_ignored(name: str) -> None:
    assert ROOT / name in committed_files()
