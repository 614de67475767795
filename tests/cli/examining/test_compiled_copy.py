import asyncio
from pathlib import Path

import pytest

from cli.examining.subjects import subject
from luftpause.cli.examining import compiled_copy
from luftpause.cli.examining.findings import Finding, Grade


def examined(folder: Path, package: Path, look_s: float = 20.0) -> Finding:
    async def story() -> Finding:
        async with subject(folder, "", look_s=look_s) as looked_at:
            (found,) = await compiled_copy.examined(looked_at, package)
            return found

    return asyncio.run(story())


def checkout(folder: Path, script: str) -> Path:
    """Return where the package is in a checkout whose compiling says so."""
    (folder / "scripts").mkdir()
    (folder / "scripts/compile").write_text(script)
    package = folder / "src/luftpause"
    package.mkdir(parents=True)
    return package


@pytest.mark.parametrize(("script", "grade"), [("exit 0", Grade.OK), ("exit 1", Grade.WARNING)])
def test_the_script_says_whether_the_copy_is_current(tmp_path: Path, script: str, grade: Grade) -> None:
    package = checkout(tmp_path, f'[ "$1" = --current ] || exit 9\n{script}\n')
    assert examined(tmp_path, package).grade is Grade.NOTE, "there is none yet"
    copy = tmp_path / "build/compiled"
    copy.mkdir(parents=True)
    (copy / "stamp").write_text("x")
    found = examined(tmp_path, package)
    assert (found.grade, found.mend) == (grade, "" if grade is Grade.OK else f"sh {tmp_path}/scripts/compile")
    assert examined(tmp_path, copy / "luftpause") == found, "the copy itself asks the same"


def test_a_script_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    package = checkout(tmp_path, "exec sleep 60\n")
    (tmp_path / "build/compiled").mkdir(parents=True)
    (tmp_path / "build/compiled/stamp").write_text("x")
    assert "was not told within 0.2 s" in examined(tmp_path, package, 0.2).seen


def test_without_a_checkout_it_says_what_runs(tmp_path: Path) -> None:
    assert examined(tmp_path, tmp_path / "lib/luftpause").seen.startswith("the hot path is")
