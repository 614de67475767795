"""What a process wrote stays bounded, in memory and on disk."""

from pathlib import Path

import pytest

from luftpause.adapters.process_host import log as process_log
from luftpause.adapters.process_host.log import LINE_CHARS_MAX, LINES_MAX, LineRing, ProcessLog


def test_the_tail_holds_the_last_lines_wherever_they_were_cut() -> None:
    log = ProcessLog(None, "engine")
    for chunk in (b"fir", b"st\nsecond\n", b"\n", b"thi", b"rd"):
        log.write(chunk)
    assert log.tail() == ("first", "second", "third")


def test_what_overwrites_itself_on_a_terminal_is_read_line_by_line() -> None:
    ring = LineRing()
    log = ProcessLog(None, "engine", ring)
    for chunk in (b"begin\r\n", b"\rshards:  0%", b"\rshards: 50%\rshards", b": 90%", b"\rshards: 100%\n"):
        log.write(chunk)
    assert ring.since(0).lines == ("begin", "shards:  0%", "shards: 50%", "shards: 90%", "shards: 100%")
    assert log.tail() == ring.since(0).lines


def test_only_the_newest_lines_are_kept() -> None:
    log = ProcessLog(None, "engine")
    log.write(b"".join(b"line %d\n" % number for number in range(1000)))
    assert len(log.tail()) == LINES_MAX
    assert log.tail()[-1] == "line 999"


def test_a_line_without_an_end_does_not_grow_without_bound() -> None:
    log = ProcessLog(None, "engine")
    for _ in range(100):
        log.write(b"x" * 100_000)
    assert log.tail() == ("x" * LINE_CHARS_MAX,)


def test_hostile_bytes_come_out_printable() -> None:
    log = ProcessLog(None, "engine")
    log.write(b"\x1b[31mred\x00\xff\n")
    assert log.tail() == ("·[31mred·\ufffd",)


def test_a_file_that_grew_too_large_is_turned_over_and_one_old_one_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_log, "FILE_BYTES_MAX", 10)
    log = ProcessLog(tmp_path / "logs", "engine-1")
    for number in range(4):
        log.write(b"message %d\n" % number * 2)
    log.close()
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["engine-1.log", "engine-1.log.1"]
    assert (tmp_path / "logs" / "engine-1.log").read_bytes() == b"message 3\n" * 2
    assert (tmp_path / "logs" / "engine-1.log.1").read_bytes() == b"message 2\n" * 2


def test_a_log_goes_on_where_an_earlier_process_ended(tmp_path: Path) -> None:
    for text in (b"one\n", b"two\n"):
        log = ProcessLog(tmp_path, "engine")
        log.write(text)
        log.close()
    assert (tmp_path / "engine.log").read_bytes() == b"one\ntwo\n"


def test_a_name_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    ProcessLog(tmp_path / "logs", "../org/model").close()
    assert [path.name for path in (tmp_path / "logs").iterdir()] == [".._org_model.log"]


def test_a_log_that_cannot_be_turned_over_is_given_up_and_the_tail_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(process_log, "FILE_BYTES_MAX", 1)
    log = ProcessLog(tmp_path, "engine")
    log.write(b"one\n")
    (tmp_path / "engine.log.1").mkdir()
    (tmp_path / "engine.log.1" / "in the way").touch()
    log.write(b"two\n")
    log.write(b"three\n")
    assert log.tail() == ("one", "two", "three")
    assert [record.message for record in caplog.records] == ["process_log_lost"]
