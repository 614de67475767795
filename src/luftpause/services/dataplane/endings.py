"""How a turn ended, as it is reported to the scheduler, by what its engine answered."""

from dataclasses import replace
from typing import Final

from luftpause.core.dialects.chat_said import AnswerText
from luftpause.core.dialects.observe import Observer
from luftpause.core.dialects.said import Said, marks_of_answer
from luftpause.core.model.ids import TurnId
from luftpause.core.model.replicas import Placement
from luftpause.core.scheduling.events import TurnFailed, TurnFinished
from luftpause.ports.engines import Exchange

BUSY: Final = (429, 503)
"""Statuses of an engine that takes no more for now."""
_DIGITS_MAX: Final = 10


def retry_after_s(exchange: Exchange) -> float | None:
    """Return how long the engine wants to be left alone, as a number of seconds; a date is not worth reading here."""
    if exchange.status in BUSY:
        for name, value in exchange.headers:
            if name == b"retry-after" and value.isdigit() and len(value) < _DIGITS_MAX:
                return float(value)
    return None


def ending_of(
    turn: TurnId, placement: Placement, exchange: Exchange, observer: Observer | None
) -> TurnFinished | TurnFailed:
    """Return how a turn ended whose engine answered whole."""
    if observer is None:
        cause = f"engine {placement.replica}: status {exchange.status}"
        return TurnFailed(turn=turn, cause=cause, retry_after_s=retry_after_s(exchange))
    seen = observer.observed()
    if seen.error and not seen.finish:
        return TurnFailed(turn=turn, cause=f"engine {placement.replica}: {seen.error}")
    return TurnFinished(turn=turn, finish=seen.finish, usage=seen.usage, tool_calls=seen.tool_calls, tools=seen.tools)


def marked(report: TurnFinished | TurnFailed, said: Said | None, heard: AnswerText | None) -> TurnFinished | TurnFailed:
    """Return a report with what its answer may be recognised by, where that was listened to."""
    if said is None or heard is None or isinstance(report, TurnFailed):
        return report
    return replace(report, marks=marks_of_answer(said, heard.text(), has_calls=bool(report.tool_calls)))
