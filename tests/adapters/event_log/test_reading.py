"""Reading an event log line by line."""

import re
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
    assert len(list(reading)) == 2 * (len(lines) - 1)
    assert (reading.torn, reading.open) == (2, 0)


def test_a_segment_without_an_end_is_counted(lines: list[bytes]) -> None:
    reading = Reading([*lines[:-1], *lines, *lines[:2]])
    list(reading)
    assert (reading.torn, reading.open) == (0, 2)


def test_whatever_is_done_to_a_line_is_told(lines: list[bytes]) -> None:
    """No decision depends on half of what a log says, so that deciding again would not notice."""
    one, two, three, four = lines[:4]
    without_sum = re.sub(rb',"sum":"[0-9a-f]*"', b"", two)
    for changed in (
        [one, three, four],
        [one, two, two, three, four],
        [one, three, two, four],
        [one, two, two.replace(b":", b": ", 1), three],
        [one, without_sum, three],
        [two, three, four],
    ):
        with pytest.raises(UnreadableError, match=r"line [123]: it was changed, or what stood before it"):
            list(Reading(changed))


@pytest.mark.parametrize("flip", [1, 0x20, 0x80])
def test_no_changed_byte_goes_unnoticed(lines: list[bytes], flip: int) -> None:
    text = b"".join(lines)
    for position in range(len(text)):
        changed = bytearray(text)
        changed[position] ^= flip
        reading = Reading(bytes(changed).splitlines(keepends=True))
        try:
            told = [number for number, _ in reading]
        except UnreadableError:
            continue
        assert reading.torn or reading.open, (position, told)


def test_line_ends_and_blank_lines_are_no_change(lines: list[bytes]) -> None:
    assert len(list(Reading([line[:-1] + b"\r\n" for line in lines]))) == len(lines) - 1


@pytest.mark.parametrize("torn", [[b"torn\n"], [b"torn\n", b"again\n"]])
def test_a_torn_line_anywhere_else_is_told(lines: list[bytes], torn: list[bytes]) -> None:
    with pytest.raises(UnreadableError, match="line 2: "):
        list(Reading([lines[0], *torn, *lines[1:]]))


def test_a_file_without_a_segment_is_no_log() -> None:
    with pytest.raises(UnreadableError, match="no segment"):
        list(Reading([]))
