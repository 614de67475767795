"""Reading an event log line by line."""

from pathlib import Path

import pytest

from adapters.event_log.logs import event_log, write
from luftpause.adapters.event_log.reading import Reading, UnreadableError


@pytest.fixture
def lines(tmp_path: Path) -> list[bytes]:
    write(event_log(tmp_path / "log"), seed=2, length=6)
    return (tmp_path / "log").read_bytes().splitlines(keepends=True)


def test_each_line_comes_with_its_number_and_empty_ones_are_passed_over(lines: list[bytes]) -> None:
    assert [number for number, _ in Reading([lines[0], b"\n", *lines[1:3]])] == [1, 3, 4]


def test_a_line_may_be_torn_before_a_segment_and_at_the_end(lines: list[bytes]) -> None:
    reading = Reading([*lines, b'{"line":"ev', *lines, b'{"li'])
    assert len(list(reading)) == 2 * len(lines)
    assert reading.torn == 2


@pytest.mark.parametrize("torn", [[b"torn\n"], [b"torn\n", b"again\n"]])
def test_a_torn_line_anywhere_else_is_told(lines: list[bytes], torn: list[bytes]) -> None:
    with pytest.raises(UnreadableError, match="line 2: "):
        list(Reading([lines[0], *torn, *lines[1:]]))


def test_a_file_without_a_segment_is_no_log() -> None:
    with pytest.raises(UnreadableError, match="no segment"):
        list(Reading([]))
