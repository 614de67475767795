"""Durations and sizes as people write them, into numbers. Pure; knows nothing of files or sections."""

import re

_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h|d))+")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(B|kB|KB|KiB|MB|MiB|GB|GiB|TB|TiB)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "KiB": 2**10,
    "MB": 10**6,
    "MiB": 2**20,
    "GB": 10**9,
    "GiB": 2**30,
    "TB": 10**12,
    "TiB": 2**40,
}
SECONDS_MAX = 365 * 86400.0
"""One year: longer than anything waits, short enough for every timer."""
BYTES_MAX = 2**60
"""More than any machine has."""


def seconds(text: str) -> float:
    """Return a duration such as "10m", "2h30m" or "500ms" in seconds.

    Raises:
        ValueError: not a duration, or longer than a year.
    """
    if not _DURATION.fullmatch(text):
        raise ValueError(f'{text!r} is no duration; write it like "10m", "500ms" or "2h30m"')
    total = sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text))
    if total > SECONDS_MAX:
        raise ValueError(f"{text!r} is longer than a year")
    return total


def size_bytes(text: str) -> int:
    """Return a size such as "20GiB" or "600MB" in bytes, rounded down.

    Raises:
        ValueError: not a size, or 2**60 bytes and more.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f'{text!r} is no size; write it like "20GiB" or "600MB"')
    number, unit = match.groups()
    whole, _, fraction = number.partition(".")
    if len(whole) > len(str(BYTES_MAX)):
        raise ValueError(f"{text!r} is more than any machine has")
    total = int(whole) * _BYTES[unit] + int(float(f"0.{fraction or 0}") * _BYTES[unit])
    if total >= BYTES_MAX:
        raise ValueError(f"{text!r} is more than any machine has")
    return total
