import pytest

from luftpause.adapters.journal_file.checksums import BrokenLineError, require_sound, with_checksum


def test_a_line_with_its_checksum_is_sound_and_with_another_one_is_not() -> None:
    line = with_checksum(b'{"a":1')
    assert line == b'{"a":1,"crc":"a702fc6e"}\n'
    require_sound(line[:-1])
    for broken in (line[:-1].replace(b"1,", b"2,"), line[:-2], b"", b"}"):
        with pytest.raises(BrokenLineError):
            require_sound(broken)
