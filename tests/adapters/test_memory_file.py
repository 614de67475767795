"""The file in which a scheduler leaves the next one what it learned."""

import logging
import zlib
from pathlib import Path

import pytest

from core.scheduling.test_memory import LOOK
from luftpause.adapters import memory_file
from luftpause.adapters.memory_file import FILE_NAME, Memory, MemoryFile
from luftpause.core.model.ids import PeerId, ReplicaId
from luftpause.core.scheduling.events import KnownReplica, MemoryRestored

PEERS = (PeerId("dp_1"), PeerId("dp_2"))
LEARNED = MemoryRestored(
    tools=(LOOK,),
    replicas=(
        KnownReplica(replica=ReplicaId("a"), placed=3, window=(2, None, 0)),
        KnownReplica(replica=ReplicaId("b")),
    ),
)


def test_what_was_written_is_read_and_replaced_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    MemoryFile(folder).write(PEERS, LEARNED)
    assert MemoryFile(folder).read() == Memory(PEERS, LEARNED)
    MemoryFile(folder).write((), MemoryRestored())
    assert MemoryFile(folder).read() == Memory()
    assert [each.name for each in folder.iterdir()] == [FILE_NAME]
    assert (folder / FILE_NAME).stat().st_mode & 0o077 == 0


def test_nothing_was_kept_where_there_is_no_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert MemoryFile(tmp_path / "nowhere").read() == Memory()
    assert not caplog.records


def test_a_torn_or_changed_file_is_ignored_with_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = MemoryFile(tmp_path)
    file.write(PEERS, LEARNED)
    path = tmp_path / FILE_NAME
    text = path.read_bytes()
    broken = [text[:length] for length in range(0, len(text), 97)]
    broken += [text.replace(b"dp_1", b"dp_9"), text.replace(b"memory 1", b"memory 2"), b"\n", text + b" "]
    for each in broken:
        path.write_bytes(each)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert file.read() == Memory()
        assert [record.message for record in caplog.records] == ["memory_ignored"]


def test_a_file_that_is_no_memory_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = MemoryFile(tmp_path)
    file.write(PEERS, LEARNED)
    monkeypatch.setattr(memory_file, "BYTES_MAX", 10)
    assert file.read() == Memory(), "it is longer than any that we write"
    monkeypatch.undo()
    path = tmp_path / FILE_NAME
    body = b'{"peers": 7}'
    path.write_bytes(b"luftpause scheduler memory 1 %08x\n" % zlib.crc32(body) + body)
    assert file.read() == Memory()
    path.unlink()
    path.mkdir()
    assert file.read() == Memory()


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(OSError, match=FILE_NAME):
        MemoryFile(tmp_path).write(PEERS, LEARNED)
    assert [each.name for each in tmp_path.iterdir()] == [FILE_NAME]
