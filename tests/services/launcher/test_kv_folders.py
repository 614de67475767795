"""Whose folder for runs' KV is whose: of launchers that live at once, of one that was killed, and where a link is."""

import errno
import fcntl
import logging
import stat
from pathlib import Path

import pytest

from luftpause.services.launcher.kv_folders import held_folder


def lives(shared: Path) -> list[str]:
    return sorted(path.name for path in shared.iterdir())


def test_two_launchers_of_one_name_that_live_at_once_do_not_share(tmp_path: Path) -> None:
    shared = tmp_path / "state" / "kv" / "local"
    with held_folder(shared) as first:
        assert first is not None
        (first / "run-0.kv").write_bytes(b"said")
        with held_folder(shared) as second:
            assert second is not None
            assert second != first
            assert {first.parent, second.parent} == {shared}
            assert lives(shared) == sorted((first.name, second.name))
        assert (first / "run-0.kv").read_bytes() == b"said"
        assert lives(shared) == [first.name]
        modes = {stat.S_IMODE(each.stat().st_mode) for each in (first, shared, shared.parent)}
        assert modes == {0o700}
    assert lives(shared) == []


def fails_in(shared: Path) -> None:
    with held_folder(shared) as folder:
        assert folder is not None
        (folder / "run-0.kv").write_bytes(b"said")
        raise RuntimeError(folder.name)


def test_the_folder_of_one_that_failed_or_was_killed_is_taken_over_empty(tmp_path: Path) -> None:
    shared = tmp_path / "kv" / "local"
    with pytest.raises(RuntimeError) as fault:
        fails_in(shared)
    with held_folder(shared) as heir:
        assert heir == shared / str(fault.value)
        assert [path.name for path in heir.iterdir()] == ["lock"]


def test_of_several_that_were_killed_one_is_taken_over_and_the_rest_removed(tmp_path: Path) -> None:
    shared = tmp_path / "kv" / "local"
    for name in ("0" * 16, "1" * 16):
        (shared / name).mkdir(parents=True)
        (shared / name / "run-0.kv").touch()
    (shared / "notes").mkdir()
    (shared / ("2" * 16)).symlink_to(shared / "notes")
    with held_folder(shared) as heir:
        assert heir is not None
        assert lives(shared) == ["0" * 16, "2" * 16, "notes"]
        assert [path.name for path in heir.iterdir()] == ["lock"]
        assert list((shared / "notes").iterdir()) == []


@pytest.mark.parametrize("linked", ["kv", "kv/local"])
def test_a_link_in_the_place_of_the_folder_is_refused(
    linked: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = tmp_path / "other"
    (other / "local").mkdir(parents=True)
    (other / "local").chmod(0o755)
    (tmp_path / linked).parent.mkdir(exist_ok=True)
    (tmp_path / linked).symlink_to(other)
    with held_folder(tmp_path / "kv" / "local") as folder:
        assert folder is None
    assert stat.S_IMODE((other / "local").stat().st_mode) == 0o755
    assert list((other / "local").iterdir()) == []
    assert [record.message for record in caplog.records] == ["kv_parking_off"]


def test_without_a_place_there_is_no_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with held_folder(None) as folder:
        assert folder is None
    (tmp_path / "file").touch()
    with caplog.at_level(logging.WARNING), held_folder(tmp_path / "file" / "kv" / "local") as folder:
        assert folder is None
    assert [record.message for record in caplog.records] == ["kv_parking_off"]


def test_where_nothing_can_be_locked_no_kv_is_kept_and_folders_do_not_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(_fd: int, _how: int) -> None:
        raise OSError(errno.ENOTSUP, "not here")

    monkeypatch.setattr(fcntl, "flock", flock)
    for _ in range(3):
        with held_folder(tmp_path / "local") as folder:
            assert folder is None
    assert len(lives(tmp_path / "local")) == 1


def test_a_lock_that_its_last_holder_removed_meanwhile_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "local"
    (shared / ("0" * 16)).mkdir(parents=True)
    left = iter([shared / ("0" * 16)])

    def flock(_fd: int, _how: int) -> None:
        for folder in left:
            (folder / "lock").unlink()
            folder.rmdir()

    monkeypatch.setattr(fcntl, "flock", flock)
    with held_folder(shared) as folder:
        assert folder is not None
        assert folder.name != "0" * 16
        assert lives(shared) == [folder.name]
