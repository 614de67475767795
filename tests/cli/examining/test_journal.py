import asyncio
import os
import shutil
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.journal_file.journal_world import R, finished, spawned, turn, write
from cli.examining.subjects import graded, subject, told
from luftpause.adapters import process_table
from luftpause.adapters.journal_file import lines
from luftpause.adapters.journal_file.compaction import MAIN
from luftpause.adapters.journal_file.disk import LOCK_NAME, DiskFolder
from luftpause.cli.examining import journal
from luftpause.cli.examining.findings import Finding, Grade

Usage = namedtuple("Usage", ["total", "used", "free"])


def examined(folder: Path) -> list[Finding]:
    return told(folder, f'[runtime]\nstate_dir = "{folder}/state"\n', journal.examined)


def test_a_sound_journal_is_counted(tmp_path: Path) -> None:
    write(tmp_path / "state", spawned(), turn(), finished())
    found = examined(tmp_path)
    assert {each.grade for each in found} <= {Grade.OK, Grade.WARNING}, "a small disk is none of its faults"
    assert "runs.jsonl is 0.0 MiB long and holds 1 runs" in [each.seen for each in found]


def test_a_folder_that_is_not_there_yet_is_fine_and_is_not_made(tmp_path: Path) -> None:
    found = examined(tmp_path)
    assert found[0].seen.endswith("is not there yet and can be made")
    assert found[-1].seen == "no runs.jsonl yet"
    assert not (tmp_path / "state").exists()


def test_a_corrupt_journal_is_told_and_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "state", spawned(), turn(), turn())
    *spawn, second, third = path.read_bytes().splitlines(keepends=True)
    corrupt = b"".join(spawn) + second.replace(b"look", b"loop") + third + b'{"torn'
    path.write_bytes(corrupt)
    found = examined(tmp_path)
    warnings = [each for each in graded(found, Grade.WARNING) if "free" not in each.seen]
    number = len(spawn) + 1
    assert warnings[0].seen == f"1 of its lines are broken: {number}"
    assert warnings[0].mend == f"sed -n {number}p {path}"
    assert warnings[1].seen.startswith(f"{R} is quarantined and will not go on: its journal is damaged")
    assert "its last 6 bytes were not written whole" in graded(found, Grade.NOTE)[0].seen
    assert path.read_bytes() == corrupt


@pytest.mark.parametrize("makes", [os.mkfifo, os.mkdir])
def test_what_is_no_file_in_its_place_is_told_and_not_waited_for(tmp_path: Path, makes: Callable[[Path], None]) -> None:
    (tmp_path / "state").mkdir()
    path = tmp_path / "state" / MAIN
    makes(path)
    makes(tmp_path / "state" / LOCK_NAME)
    (found,) = graded(examined(tmp_path), Grade.ERROR)
    assert (found.seen, found.mend) == (f"{path} is no file", f"mv {path} {path}.aside")


def test_a_newer_one_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(lines, "VERSION", lines.VERSION + 1)
        write(tmp_path / "state", spawned())
    (found,) = graded(examined(tmp_path), Grade.ERROR)
    assert found.mend == "pip install --upgrade luftpause"


def test_who_has_it_is_named_and_not_disturbed(tmp_path: Path) -> None:
    if not process_table.is_known():
        pytest.skip("only Linux tells who has a file open")
    held = DiskFolder(tmp_path / "state").lock()
    try:
        assert any("no other runtime can use it" in each.seen for each in graded(examined(tmp_path), Grade.NOTE))
    finally:
        held.close()
    assert graded(examined(tmp_path), Grade.NOTE) == []


def test_a_file_in_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("mine")
    assert "is no folder" in graded(examined(tmp_path), Grade.ERROR)[0].seen


@pytest.mark.parametrize(("free", "grade"), [(0, Grade.ERROR), (journal.FREE_NONE, Grade.WARNING), (2**40, Grade.OK)])
def test_a_disk_that_is_nearly_full_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, grade: Grade
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(2**40, 0, free))
    (found,) = [each for each in examined(tmp_path) if "MiB are free" in each.seen]
    assert found.grade is grade


def test_a_very_long_one_is_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "state", spawned())
    with path.open("r+b") as file:
        file.truncate(100 << 20)

    async def story() -> list[Finding]:
        async with subject(tmp_path, f'[runtime]\nstate_dir = "{tmp_path}/state"\n') as looked_at:
            return await journal.examined(looked_at)

    assert "too long to be read here" in asyncio.run(story())[-1].seen
