"""Where something was measured."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

import luftpause
from luftpause.testkit.bench import machine
from luftpause.testkit.bench.machine import UNKNOWN, commit, describe_machine, machine_line, now

Runs: TypeAlias = Callable[[Path], None]


def test_a_machine_is_told_in_one_line() -> None:
    line = machine_line(describe_machine())
    assert "cores" in line
    assert "\n" not in line
    assert now().endswith("+00:00")


def repository(folder: Path, compiled: str) -> Path:
    """Make a checkout with one commit, whose compiling says so, and return it."""
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts" / "compile").write_text(f'[ "$1" = --current ] || exit 9\n{compiled}\n', encoding="utf-8")
    (folder / "benchmarks/results").mkdir(parents=True)
    (folder / "benchmarks/results/w1.json").touch()
    who = ("-c", "user.name=x", "-c", "user.email=x@localhost")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "all")):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return folder


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Let a package stand for the one that runs."""

    def let(package: Path) -> None:
        monkeypatch.setattr(machine, "PACKAGE", package)
        monkeypatch.setattr(machine, "ROOT", machine.root_of(package))

    return let


@pytest.mark.parametrize("package", ["src/luftpause", "build/compiled/luftpause"])
def test_a_checkout_and_its_compiled_copy_know_their_commit(tmp_path: Path, runs: Runs, package: str) -> None:
    root = repository(tmp_path, "exit 0")
    runs(root / package)
    clean = commit()
    assert len(clean) == 10
    (root / "benchmarks/results/w1.json").write_text("{}", encoding="utf-8")
    assert commit() == clean, "the result before this one is none of its sources"
    (root / "scripts" / "compile").write_text("exit 0", encoding="utf-8")
    assert commit() == f"{clean}-dirty"


def test_a_compiled_copy_of_other_sources_is_of_the_commit_that_it_was_made_of(tmp_path: Path, runs: Runs) -> None:
    copy = repository(tmp_path, "exit 1") / "build/compiled"
    runs(copy / "luftpause")
    assert commit() == UNKNOWN
    copy.mkdir(parents=True)
    (copy / "commit").write_text("0123456789-dirty", encoding="utf-8")
    assert commit() == "0123456789-dirty"


def test_an_installed_package_says_its_version_whatever_it_is_installed_in(tmp_path: Path, runs: Runs) -> None:
    runs(repository(tmp_path, "exit 0") / ".venv/lib/python3/site-packages/luftpause")
    assert commit() == f"v{luftpause.__version__}"
