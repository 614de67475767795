"""How a turn ended, as it is reported to the scheduler, by what its engine answered."""

import time
from dataclasses import replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

from luftpause.core.dialects.answer_text import AnswerText
from luftpause.core.dialects.dialect import WayBack
from luftpause.core.dialects.observe import Observer
from luftpause.core.dialects.said import Said, marks_of_answer
from luftpause.core.model.ids import TurnId
from luftpause.core.model.replicas import Placement
from luftpause.core.scheduling.events import TurnFailed, TurnFinished
from luftpause.ports.engines import Exchange

BUSY: Final = (429, 503)
"""Statuses of an engine that takes no more for now."""
RETRY_AFTER_S_MAX: Final = 3600.0
"""No engine is believed that it wants to be left alone for longer."""
_DIGITS_MAX: Final = 10
_DATE_BYTES_MAX: Final = 64


def retry_after_s(exchange: Exchange) -> float | None:
    """Return how long the engine wants to be left alone, seconds: it says a number of them, or a date (RFC 9110).

    A date counts from the one that the answer bears, since clocks differ; without one from ours.
    """
    if exchange.status not in BUSY:
        return None
    headers = dict(exchange.headers)
    value = headers.get(b"retry-after", b"")
    if value.isdigit():
        return min(float(value), RETRY_AFTER_S_MAX) if len(value) < _DIGITS_MAX else None
    until = _instant(value)
    if until is None:
        return None
    now = _instant(headers.get(b"date", b""))
    return min(max(0.0, until - (time.time() if now is None else now)), RETRY_AFTER_S_MAX)


def _instant(value: bytes) -> float | None:
    """Return what a date of HTTP's means, seconds since the epoch; None of anything else."""
    if not 0 < len(value) <= _DATE_BYTES_MAX or not value.isascii():
        return None
    try:
        date = parsedate_to_datetime(value.decode("ascii"))
        return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def ending_of(
    turn: TurnId, placement: Placement, exchange: Exchange, observer: Observer | None, back: WayBack | None = None
) -> TurnFinished | TurnFailed:
    """Return how a turn ended whose engine answered whole.

    Args:
        turn: the turn.
        placement: where it ran.
        exchange: the answer.
        observer: what looked at it; None where it is a failure.
        back: what said it in other words: its calls are known by the ids that the client was given there.
    """
    if observer is None:
        cause = f"engine {placement.replica}: status {exchange.status}"
        return TurnFailed(turn=turn, cause=cause, retry_after_s=retry_after_s(exchange))
    seen = observer.observed()
    if seen.error and not seen.finish:
        return TurnFailed(turn=turn, cause=f"engine {placement.replica}: {seen.error}")
    calls = seen.tool_calls if back is None else tuple(back.call_ids())
    return TurnFinished(turn=turn, finish=seen.finish, usage=seen.usage, tool_calls=calls, tools=seen.tools)


def marked(report: TurnFinished | TurnFailed, said: Said | None, heard: AnswerText | None) -> TurnFinished | TurnFailed:
    """Return a report with what its answer may be recognised by, where that was listened to."""
    if said is None or heard is None or isinstance(report, TurnFailed):
        return report
    return replace(report, marks=marks_of_answer(said, heard.text(), has_calls=bool(report.tool_calls or report.tools)))
