"""How a turn ended, as it is reported to the scheduler, by what its engine answered; and what its failures mean."""

import time
from dataclasses import replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

from luftpause.core.dialects.answer_text import AnswerText
from luftpause.core.dialects.dialect import UnfitAnswerError, WayBack
from luftpause.core.dialects.engine_refusals import TOO_LONG_STATUSES, redirected
from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.dialects.observe import Observer
from luftpause.core.dialects.said import Said, marks_of_answer
from luftpause.core.model.ids import TurnId
from luftpause.core.model.replicas import Placement
from luftpause.core.model.tool_names import A_PERSON
from luftpause.core.scheduling.events import TurnFailed, TurnFinished
from luftpause.ports.engines import Exchange

BUSY: Final = (429, 503)
"""Statuses of an engine that takes no more for now."""
RETRY_AFTER_S_MAX: Final = 3600.0
"""No engine is believed that it wants to be left alone for longer."""
BUSY_PAUSE_S: Final = 1.0
"""A busy engine is asked again after this, or later if it says so. One that names no time or none at all waits too."""
BUSY_PAUSE_S_MAX: Final = 300.0
_WAIT_FOR_WORDS: Final = ("messages", "responses")
REFUSAL_BYTES_MAX: Final = 64 * 1024
"""So much of an engine's refusal is read to be said in other words."""
SHUT_DOWN: Final = Failure(
    code=FailureCode.SHUTTING_DOWN,
    message="the LLM door shut down before anything was answered: send the request again",
    retry_after_s=1.0,
)
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


def pause_s(exchange: Exchange) -> float:
    """Return after how many seconds a busy engine is asked again: at once would be thousands of times a second."""
    return min(retry_after_s(exchange) or BUSY_PAUSE_S, BUSY_PAUSE_S_MAX)


def is_odd_refusal(exchange: Exchange, dialect: str) -> bool:
    """Say whether an answer is looked at before it is passed on, where that could be done unseen.

    It sends its client away, or is a failure of a status that its words may not deserve, or in a dialect, given by its
    name, whose clients wait for certain words, and short enough to be read.
    """
    if 300 <= exchange.status < 400:
        return True
    length = dict(exchange.headers).get(b"content-length", b"")
    is_odd = exchange.status == 500 or (exchange.status in TOO_LONG_STATUSES and dialect in _WAIT_FOR_WORDS)
    return is_odd and length.isdigit() and len(length) < 10 and int(length) <= REFUSAL_BYTES_MAX


def check_stays(exchange: Exchange) -> None:
    """Refuse an answer that sends its client elsewhere: clients would follow it past us, with their keys.

    Raises:
        UnfitAnswerError: it is one; the message names where it leads.
    """
    if 300 <= exchange.status < 400:
        raise UnfitAnswerError(redirected(exchange.status, dict(exchange.headers).get(b"location", b"")))


def _instant(value: bytes) -> float | None:
    """Return what a date of HTTP's means, seconds since the epoch; None of anything else."""
    if not 0 < len(value) <= _DATE_BYTES_MAX or not value.isascii():
        return None
    try:
        date = parsedate_to_datetime(value.decode("ascii"))
        return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


class Measured(NamedTuple):
    """How long an answer became, and might: see `TurnFinished`."""

    reply_bytes: int = 0
    reply_cap: int = 0


NOT_MEASURED: Final = Measured()


def ending_of(
    turn: TurnId,
    placement: Placement,
    exchange: Exchange,
    observer: Observer | None,
    back: WayBack | None = None,
    measured: Measured = NOT_MEASURED,
) -> TurnFinished | TurnFailed:
    """Return how a turn ended whose engine answered whole.

    Args:
        turn: the turn.
        placement: where it ran.
        exchange: the answer.
        observer: what looked at it; None where it is a failure.
        back: what said it in other words: its calls are known by the ids that the client was given there, and it has
            failed where that client was told so.
        measured: its length.
    """
    if observer is None:
        cause = f"engine {placement.replica}: status {exchange.status}"
        return TurnFailed(turn=turn, cause=cause, retry_after_s=retry_after_s(exchange))
    seen = observer.observed()
    told = "" if back is None else back.failure
    if told or (seen.error and not seen.finish):
        return TurnFailed(turn=turn, cause=f"engine {placement.replica}: {seen.error or told}")
    calls = seen.tool_calls if back is None else tuple(back.call_ids())
    return TurnFinished(
        turn=turn,
        finish=seen.finish,
        usage=seen.usage,
        tool_calls=calls,
        tools=seen.tools,
        reply_bytes=measured.reply_bytes,
        reply_cap=measured.reply_cap,
    )


def asking(report: TurnFinished | TurnFailed, approve_tools: frozenset[str]) -> TurnFinished | TurnFailed:
    """Return a report that says that its run waits for a person, where it called a tool that one is asked about."""
    if not approve_tools or isinstance(report, TurnFailed) or approve_tools.isdisjoint(report.tools):
        return report
    return replace(report, tools=(A_PERSON,))


def marked(report: TurnFinished | TurnFailed, said: Said | None, heard: AnswerText | None) -> TurnFinished | TurnFailed:
    """Return a report with what its answer may be recognised by, where that was listened to."""
    if said is None or heard is None or isinstance(report, TurnFailed):
        return report
    return replace(report, marks=marks_of_answer(said, heard.text(), has_calls=bool(report.tool_calls or report.tools)))
