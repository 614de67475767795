import pytest
from msgspec import Raw

from luftpause.core.dialects.numbers import whole, whole_raw


@pytest.mark.parametrize(("value", "found"), [(1.0, 1), (-0.0, 0), (40, 40), (1.5, 1.5), (1e300, 1e300)])
def test_a_whole_number_is_one(value: float, found: float) -> None:
    assert whole(value) == found
    assert isinstance(whole(value), type(found))


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_what_is_no_number_stays(value: float) -> None:
    assert isinstance(whole(value), float)


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (b"1.0", b"1"),
        (b"4e1", b"40"),
        (b"4E1", b"40"),
        (b"7", b"7"),
        (b"1.5", b"1.5"),
        (b"1e400", b"1e400"),
        (b"null", b"null"),
        (b"true", b"true"),
        (b'"1.0"', b'"1.0"'),
        (b"[1.0]", b"[1.0]"),
    ],
)
def test_only_a_number_is_written_anew(written: bytes, found: bytes) -> None:
    assert bytes(whole_raw(Raw(written))) == found
