"""When to try a turn again, and after how long."""

from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

PAUSE_MAX_S: Final = 3600.0
"""No longer than this, whatever a Retry-After says."""

_DOUBLINGS_MAX: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to put up with an engine.

    Attributes:
        turn_timeout_s: without a sign of life for this long, a try has failed, and nobody to be reached fails the turn.
        tries: in all, for replies that are broken; that nobody is there, or is there but busy, does not count.
        backoff_s: pause before the second try; it doubles before each further one.
        backoff_max_s: longest pause.
        rate_limit_pause_s: pause after a 429 that names none.
    """

    turn_timeout_s: float = 600.0
    tries: int = 5
    backoff_s: float = 0.5
    backoff_max_s: float = 5.0
    rate_limit_pause_s: float = 1.0

    def pause_after(self, failures: int, draw: float) -> float:
        """Return the seconds to wait after so many failures in a row, at least one.

        `draw`, from 0 to 1, takes up to half of it away, so that runs which failed together come back one by one.
        """
        whole = self.backoff_s * 2.0 ** min(failures - 1, _DOUBLINGS_MAX)
        return min(whole, self.backoff_max_s) * (1.0 - draw / 2.0)


def retry_after_s(value: bytes | None, utc_s: float, *, otherwise_s: float) -> float:
    """Return the seconds that a Retry-After asks for: a number, or a date against `utc_s`; `otherwise_s` if neither."""
    if value is None:
        return otherwise_s
    text = value.decode("latin-1").strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return min(float(text), PAUSE_MAX_S)
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return otherwise_s
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return min(max(0.0, when.timestamp() - utc_s), PAUSE_MAX_S)
