"""The formats of JSON Schema that are checked; any other one only describes."""

import re
from datetime import datetime, time
from typing import Final
from urllib.parse import urlsplit

from jsonschema import FormatChecker

LENGTH_MAX: Final = 4096
"""Characters; a longer text is of no format."""

FORMATS: Final = FormatChecker(formats=("email", "idn-email", "ipv4", "ipv6", "date", "uuid"))
_TIME: Final = re.compile(r"(\d\d:\d\d:)(\d\d)(\.\d{1,18})?([Zz]|[+-]\d\d:\d\d)")
_LABEL: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_DURATION: Final = re.compile(
    r"P(\d{1,9}W|(?=.)(\d{1,9}Y)?(\d{1,9}M)?(\d{1,9}D)?(T(?=.)(\d{1,9}H)?(\d{1,9}M)?(\d{1,9}S)?)?)"
)


@FORMATS.checks("time")
def is_time(value: object) -> bool:
    """Whether it is a time of day with its offset, as RFC 3339 has it."""
    if not isinstance(value, str):
        return True
    parts = _TIME.fullmatch(value[:LENGTH_MAX])
    if parts is None:
        return False
    # A leap second is one of the next minute to everybody else.
    second = "59" if parts[2] == "60" else parts[2]
    return _reads(time.fromisoformat, parts[1] + second + parts[4].upper())


@FORMATS.checks("date-time")
def is_date_time(value: object) -> bool:
    """Whether it is a moment, as RFC 3339 has it."""
    if not isinstance(value, str):
        return True
    day, mark, rest = value[:10], value[10:11], value[11:]
    return mark in ("T", "t", " ") and _reads(datetime.fromisoformat, day) and len(day) == 10 and is_time(rest)


@FORMATS.checks("uri")
def is_uri(value: object) -> bool:
    """Whether it is an address with its scheme, in ASCII and without spaces."""
    if not isinstance(value, str):
        return True
    if len(value) > LENGTH_MAX or not value.isascii() or any(mark <= " " or mark in '<>"{}|\\^`' for mark in value):
        return False
    try:
        return bool(urlsplit(value).scheme)
    except ValueError:
        return False


@FORMATS.checks("hostname")
def is_hostname(value: object) -> bool:
    """Whether it is labels with dots between."""
    if not isinstance(value, str):
        return True
    return len(value) <= 253 and all(_LABEL.fullmatch(label) for label in value.removesuffix(".").split("."))


@FORMATS.checks("duration")
def is_duration(value: object) -> bool:
    """Whether it is a length of time, as ISO 8601 has it."""
    return not isinstance(value, str) or _DURATION.fullmatch(value[:LENGTH_MAX]) is not None


@FORMATS.checks("regex")
def is_pattern(value: object) -> bool:
    """Whether it is a pattern."""
    return not isinstance(value, str) or (len(value) <= LENGTH_MAX and _reads(re.compile, value))


def _reads(read: object, text: str) -> bool:
    try:
        read(text) if callable(read) else None
    except (ValueError, re.error, RecursionError, OverflowError):
        return False
    return True
