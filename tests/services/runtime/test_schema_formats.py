import pytest

from luftpause.services.runtime.schema_formats import FORMATS, LENGTH_MAX

GOOD = {
    "date-time": ["2026-11-30T09:00:00Z", "2026-11-30t09:00:00.123456789+05:30", "2016-12-31T23:59:60Z"],
    "time": ["09:00:00Z", "23:59:60-08:00"],
    "date": ["2026-11-30"],
    "email": ["a@b"],
    "uri": ["https://example.org/a?b#c", "urn:isbn:1", "mailto:a@b"],
    "hostname": ["example.org", "a", "xn--nxasmq6b.example."],
    "duration": ["P1Y2M3DT4H5M6S", "P3W", "PT5M"],
    "uuid": ["12345678-1234-5678-1234-567812345678"],
    "ipv4": ["127.0.0.1"],
    "ipv6": ["::1"],
    "regex": ["^a+$"],
}
BAD = {
    "date-time": ["2026-11-30", "2026-11-30T09:00:00", "2026-13-30T09:00:00Z", "20261130T090000Z", "now", ""],
    "time": ["09:00", "25:00:00Z", "09:00:00+25:00", "09:00:00"],
    "date": ["30.11.2026"],
    "email": ["nobody"],
    "uri": ["/a/b", "https://a b", "http://[::1", "é:b", "a:" + "b" * LENGTH_MAX],
    "hostname": ["-a", "a..b", "a_b", "", "a" * 64, "a." * 200],
    "duration": ["P", "PT", "5M", "P1W2D", "P1H"],
    "uuid": ["1234"],
    "ipv4": ["127.0.0.256"],
    "ipv6": ["1"],
    "regex": ["(", "(" * 5000],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in GOOD for value in GOOD[name]])
def test_what_is_of_a_format_is_so(name: str, value: str) -> None:
    assert FORMATS.conforms(value, name)
    assert FORMATS.conforms(5, name), "formats are of texts"


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
def test_what_is_not_of_a_format_is_not(name: str, value: str) -> None:
    assert not FORMATS.conforms(value, name)


def test_all_formats_are_tried() -> None:
    assert set(FORMATS.checkers) == set(GOOD) | {"idn-email"}
