"""What is compiled is shown its work first; where that cannot be, it is said so and done without."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from native import training
from native.build import compile_beside
from native.training import TrainingError, train

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD_S = 240


def package_of(folder: Path, **modules: str) -> Path:
    """A package by the name of luftpause with these modules; returns the folder that holds it."""
    (folder / "luftpause").mkdir(parents=True)
    for name, text in {"__init__": "", **modules}.items():
        (folder / "luftpause" / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


NOTES_ITSELF = "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\n"


@pytest.mark.parametrize(
    ("main", "why"),
    [
        ("print('no engine today')\nraise SystemExit(3)", "fake-engine did not start: no engine today"),
        ("print('I am slow', flush=True)\ntime.sleep(60)", "fake-engine did not start: "),
    ],
    ids=["ends", "never-ready"],
)
def test_a_copy_that_cannot_be_shown_its_work_says_why_and_leaves_nobody_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, main: str, why: str
) -> None:
    monkeypatch.setattr(training, "START_S", 3.0)
    with pytest.raises(TrainingError) as told:
        train(package_of(tmp_path / "package", __main__=NOTES_ITSELF + main), tmp_path / "work")
    assert str(told.value).startswith(why)
    (noted,) = (tmp_path / "work").rglob("pid")
    with pytest.raises(ProcessLookupError):
        os.kill(int(noted.read_text(encoding="utf-8")), 0)


@pytest.mark.slow
@pytest.mark.timeout(BUILD_S)
def test_what_cannot_be_shown_its_work_is_compiled_all_the_same(tmp_path: Path) -> None:
    package = package_of(tmp_path / "package", hot="def twice(n: int) -> int:\n    return 2 * n\n")
    said: list[str] = []
    libraries = compile_beside(package, tmp_path / "scratch", ["luftpause/hot.py"], said.append)
    assert libraries
    assert len(said) == 1
    assert "without having been shown its work" in said[0]
    asks = "from luftpause import hot; print(hot.twice(21), hot.__file__.endswith('.py'))"
    ran = subprocess.run([sys.executable, "-c", asks], cwd=package, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["42", "False"]


@pytest.mark.nightly
def test_the_sources_can_be_shown_their_work(tmp_path: Path) -> None:
    train(ROOT / "src", tmp_path / "work")
