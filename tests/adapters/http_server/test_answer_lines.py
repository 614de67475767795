import pytest

from luftpause.adapters.http_server.answer_lines import line_of, size_line


@pytest.mark.parametrize("size", [1, 255, 1023, 1024, 1 << 20])
def test_a_chunk_is_announced_in_hex_however_often(size: int) -> None:
    assert [size_line(size), size_line(size)] == [b"%x\r\n" % size] * 2


@pytest.mark.parametrize("value", [b"plain", b"", b"tab\tinside", b"v" * 10_000])
def test_a_header_is_written_alike_the_first_time_and_later(value: bytes) -> None:
    assert [line_of((b"x-name", value)), line_of((b"x-name", value))] == [b"x-name: " + value] * 2


@pytest.mark.parametrize("byte", [0, *range(10, 32), 127])
def test_no_header_holds_a_control_character_however_often_it_is_tried(byte: int) -> None:
    for header in ((b"x", b"a" + bytes([byte])), (b"x" + bytes([byte]), b"a")):
        for _ in range(2):
            with pytest.raises(RuntimeError, match="control character"):
                line_of(header)


def test_many_different_headers_are_written_right() -> None:
    for number in range(3000):
        assert line_of((b"x", b"%d" % number)) == b"x: %d" % number
