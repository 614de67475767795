"""The folder of a launcher's KV files: what it takes in, what it deletes, and what it never touches."""

import logging
import os
import stat
from pathlib import Path

import pytest

from luftpause.core.model.ids import KvFile, ModelName
from luftpause.core.model.parked_kv import SavedKv
from luftpause.services.launcher import kv_files
from luftpause.services.launcher.kv_files import KvFiles

ONE, TWO = KvFile(1), KvFile(2)


def written(folder: Path, file: KvFile, size: int = 10) -> SavedKv:
    (folder / f"run-{file}.kv").write_bytes(b"x" * size)
    return SavedKv(file=file, tokens=5, size=0, took_s=0.5)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_taken_in_with_the_size_that_it_has_and_is_nobody_elses_to_read(tmp_path: Path) -> None:
    files = KvFiles(tmp_path, 100)
    kept = files.keep(written(tmp_path, ONE))
    assert kept == SavedKv(file=ONE, tokens=5, size=10, took_s=0.5)
    assert files.kept() == (kept,)
    assert stat.S_IMODE((tmp_path / "run-1.kv").stat().st_mode) == 0o600


def test_what_exceeds_all_that_may_be_kept_is_deleted(tmp_path: Path) -> None:
    files = KvFiles(tmp_path, 25)
    assert files.keep(written(tmp_path, ONE))
    assert files.has_room()
    assert files.keep(written(tmp_path, TWO, 16)) is None
    assert names(tmp_path) == ["run-1.kv"]
    files.resize(10)
    assert not files.has_room()


def test_a_full_disk_takes_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_files, "FREE_MIN", 1 << 62)
    assert not KvFiles(tmp_path, 100).has_room()
    assert not KvFiles(tmp_path / "gone", 100).has_room()


def test_what_is_dropped_while_it_is_written_goes_when_it_is_handed_over(tmp_path: Path) -> None:
    files = KvFiles(tmp_path, 100)
    files.writing(ONE)
    files.drop((ONE,))
    assert files.keep(written(tmp_path, ONE)) is None
    assert names(tmp_path) == []
    files.writing(ONE)
    assert files.keep(written(tmp_path, ONE)), "a number that is used again is another file"


def test_what_was_never_written_is_not_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = KvFiles(tmp_path, 100)
    with caplog.at_level(logging.WARNING):
        assert files.keep(SavedKv(file=ONE, tokens=5, size=0)) is None
    assert [record.message for record in caplog.records] == ["kv_file_missing"]
    files.drop((ONE, TWO))


def test_a_start_deletes_what_others_left_and_nothing_that_is_not_ours(tmp_path: Path) -> None:
    for name in ("run-7.kv", "run-x.kv", "run-7.kv.bak", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "run-8.kv").mkdir()
    KvFiles(tmp_path, 100).clear()
    assert names(tmp_path) == ["notes.txt", "run-7.kv.bak", "run-x.kv"]


def test_a_folder_that_is_gone_is_empty(tmp_path: Path) -> None:
    files = KvFiles(tmp_path / "gone", 100)
    files.clear()
    files.drop((ONE,))
    assert files.kept() == ()


def test_a_link_that_somebody_put_there_is_deleted_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "precious"
    other.write_bytes(b"mine")
    folder = tmp_path / "kv"
    folder.mkdir()
    (folder / "run-1.kv").symlink_to(other)
    KvFiles(folder, 100).clear()
    assert names(folder) == []
    assert other.read_bytes() == b"mine"


def test_another_model_file_makes_what_was_kept_worthless(tmp_path: Path) -> None:
    files = KvFiles(tmp_path, 100)
    files.is_for(ModelName("a"), "first")
    files.keep(written(tmp_path, ONE))
    files.is_for(ModelName("b"), "other")
    files.is_for(ModelName("a"), "first")
    assert files.kept()
    files.is_for(ModelName("a"), "second")
    assert files.kept() == ()
    assert names(tmp_path) == []


ODD = ("link", "second name", "pipe", "folder")


def put(kind: str, path: Path, other: Path) -> None:
    """Put something there that is no plain file, or somebody else's."""
    match kind:
        case "link":
            path.symlink_to(other)
        case "second name":
            path.hardlink_to(other)
        case "pipe":
            os.mkfifo(path)
        case _:
            (path / "deep").mkdir(parents=True)


def test_whatever_is_in_the_place_of_a_file_is_removed_before_it_is_written(tmp_path: Path) -> None:
    other = tmp_path / "precious"
    other.write_bytes(b"mine")
    folder = tmp_path / "kv"
    folder.mkdir()
    path = folder / "run-1.kv"
    files = KvFiles(folder, 100)
    for kind in ODD:
        put(kind, path, other)
        assert files.writing(ONE)
        assert names(folder) == []
    assert other.read_bytes() == b"mine"


@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_plain_file_of_ours_is_not_taken_in(kind: str, tmp_path: Path) -> None:
    other = tmp_path / "precious"
    other.write_bytes(b"mine")
    other.chmod(0o644)
    folder = tmp_path / "kv"
    folder.mkdir()
    path = folder / "run-1.kv"
    files = KvFiles(folder, 100)
    put(kind, path, other)
    assert files.keep(SavedKv(file=ONE, tokens=5, size=0)) is None
    assert names(folder) == []
    assert (other.read_bytes(), stat.S_IMODE(other.stat().st_mode)) == (b"mine", 0o644)


def test_nothing_is_done_in_a_folder_that_was_put_in_the_place_of_ours(tmp_path: Path) -> None:
    folder, other = tmp_path / "kv", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    files = KvFiles(folder, 100)
    written(other, ONE)
    folder.rmdir()
    folder.symlink_to(other)
    assert not files.has_room()
    assert not files.writing(ONE)
    assert files.keep(SavedKv(file=ONE, tokens=5, size=0)) is None
    files.drop((ONE,))
    files.clear()
    KvFiles(folder, 100).clear()
    assert names(other) == ["run-1.kv"]
