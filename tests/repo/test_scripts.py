"""The set-up scripts say clearly what is missing, without touching anything."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from repo.sources import ROOT

SCRIPTS = ("check", "clients", "conformance", "lock", "newcomer", "second-model", "test", "up", "venv")


def sh(script: Path, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"] if path is None else path, "HOME": str(script.parent)}
    shell = shutil.which("sh")
    assert shell is not None
    return subprocess.run(
        [shell, str(script), *arguments],
        env=env,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return scripts/venv of a copy of the repository that has no virtual environment yet."""
    for folder in ("scripts", "requirements"):
        shutil.copytree(ROOT / folder, tmp_path / "a copy" / folder)
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "a copy")
    return tmp_path / "a copy/scripts/venv"


def tools(tmp_path: Path, **pythons: str) -> str:
    """Return a PATH with the few programs that the script needs, and made-up Pythons."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("dirname", "cat", "cksum", "rm"):
        program = shutil.which(name)
        assert program is not None
        (folder / name).symlink_to(program)
    for name, body in pythons.items():
        fake = folder / name.replace("_", ".")
        fake.write_text(f"#!{shutil.which('sh')}\n{body}\n", encoding="utf-8")
        fake.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_is_valid_and_for_any_posix_shell(name: str) -> None:
    script = ROOT / "scripts" / name
    assert script.read_text(encoding="utf-8").startswith("#!/bin/sh\n")
    assert subprocess.run(["sh", "-n", str(script)], capture_output=True, timeout=30, check=False).returncode == 0


@pytest.mark.parametrize("arguments", [[], ["everything"], ["run", "dev"]])
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    answer = sh(ROOT / "scripts/venv", *arguments)
    assert (answer.returncode, answer.stderr) == (2, "usage: sh scripts/venv run|local|dev\n")


def test_an_unknown_check_exits_with_2_and_names_all_checks() -> None:
    answer = sh(ROOT / "scripts/check", "nonsense")
    assert answer.returncode == 2
    assert "no step 'nonsense'; there are: format lint" in answer.stderr


def test_checks_without_a_set_up_say_what_to_run(copy: Path) -> None:
    answer = sh(copy.parent / "check")
    assert answer.returncode == 2
    assert "run: sh scripts/venv dev" in answer.stderr


def test_without_a_python_that_really_runs_it_says_what_to_install(copy: Path, tmp_path: Path) -> None:
    too_old = "exit 1"
    stand_in = "echo no such version >&2; exit 127"
    answer = sh(copy, "run", path=tools(tmp_path, python3_13=stand_in, python3=too_old))
    assert answer.returncode == 1
    assert answer.stderr.startswith("error: no Python 3.11 or newer on PATH; install one")


def test_a_python_that_cannot_make_environments_says_what_to_install(copy: Path, tmp_path: Path) -> None:
    body = f'case "$*" in *ensurepip*) exit 1;; esac; exec "{sys.executable}" "$@"'
    answer = sh(copy, "run", path=tools(tmp_path, python3=body))
    assert answer.returncode == 1
    assert "python3 cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv" in answer.stderr
    assert not (copy.parent.parent / ".venv").exists()


@pytest.mark.parametrize(
    ("optimised", "found"),
    [((), "python3.13"), (("python3.11", "python3"), "python3.11"), (("python3.13", "python3"), "python3.13")],
)
def test_an_optimised_python_is_preferred_to_a_newer_one(
    copy: Path, tmp_path: Path, optimised: tuple[str, ...], found: str
) -> None:
    def body(name: str) -> str:
        looks = f"case $* in *CONFIG_ARGS*) exit {int(name not in optimised)};; *--version*) echo {name};;"
        return f"{looks} *-m*) echo {name} makes it >&2; exit 1;; esac"

    pythons = {name.replace(".", "_"): body(name) for name in ("python3.13", "python3.11", "python3")}
    answer = sh(copy, "run", path=tools(tmp_path, **pythons))
    assert f"making .venv with {found}\n{found} makes it\n" in answer.stderr


def test_what_is_installed_and_unchanged_is_left_alone(copy: Path, tmp_path: Path) -> None:
    root = copy.parent.parent
    python = root / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!{shutil.which('sh')}\nexit 9\n", encoding="utf-8")
    python.chmod(0o755)
    path = tools(tmp_path)
    sums = subprocess.run(
        "cksum pyproject.toml requirements/*.txt",
        shell=True,
        cwd=root,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout
    (root / ".venv/.installed-dev").write_text(f"{root} {sums}", encoding="utf-8")
    for wanted in ("run", "local", "dev"):
        answer = sh(copy, wanted, path=path)
        assert (answer.returncode, answer.stderr) == (0, "")
    (root / "pyproject.toml").write_text("# changed\n", encoding="utf-8")
    assert "remove .venv and try again" in sh(copy, "run", path=path).stderr
