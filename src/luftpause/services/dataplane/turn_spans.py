"""A span for each turn that passes through: it begins with the offer and ends with the turn.

It stands between the dataplane and its scheduler, where each turn is offered once and reported over once; so no turn
does anything for it itself. Without a tracer nobody makes one of these.
"""

import dataclasses
import time
from asyncio import Future
from collections.abc import Sequence
from typing import Final

from luftpause.core.model.ids import ModelName, PeerId, PrincipalId, ReplicaId, RunId, TurnId
from luftpause.core.model.replicas import Placement, ReplicaSpec
from luftpause.core.model.traces import TraceContext, context_in
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import (
    AnswerGrew,
    FirstTokenSeen,
    TurnAbandoned,
    TurnFailed,
    TurnFinished,
    TurnReport,
    TurnReturned,
    TurnsRenewed,
    TurnStays,
)
from luftpause.ports.engines import Header
from luftpause.ports.scheduler import Recall, SchedulerLink, Ticket, TurnRefusedError
from luftpause.ports.tracing import Attribute, Span, SpanKind, Tracer
from luftpause.telemetry import span_words as words
from luftpause.telemetry.trace_ids import begun_under, fresh_span

TRACE_HEADER: Final = b"traceparent"
_LEFT: Final = "the client left"


def trace_in(headers: dict[bytes, bytes]) -> TraceContext:
    """Return the place of a request's turn: in the trace that its headers name, else in a new one."""
    return begun_under(context_in(headers.get(TRACE_HEADER, b"").decode("latin-1")))


def with_trace(headers: Sequence[Header], trace: TraceContext) -> tuple[Header, ...]:
    """Return the headers for an engine with the turn's place in place of its client's."""
    return *(each for each in headers if each[0] != TRACE_HEADER), (TRACE_HEADER, trace.header.encode("ascii"))


class _Open:
    """A turn under way: what its span says so far."""

    __slots__ = ("at", "attributes", "began_ns")

    def __init__(self, offer: TurnOffer, at: TraceContext) -> None:
        self.at = at
        self.began_ns = time.time_ns()
        self.attributes: dict[str, Attribute] = {
            words.PROVIDER: words.OURSELVES,
            words.REQUEST_MODEL: offer.model,
            words.TURN: offer.turn,
            words.CLASS: offer.service_class.value,
            words.CALLER: offer.caller,
        }
        if offer.shape.in_run:
            self.attributes[words.OPERATION] = words.CHAT

    @property
    def age_s(self) -> float:
        return (time.time_ns() - self.began_ns) / 1e9


class TurnSpans:
    """A `SchedulerLink` that passes everything on, with the trace on every report, and tells a tracer of each turn."""

    def __init__(self, link: SchedulerLink, tracer: Tracer) -> None:
        self._link = link
        self._tracer = tracer
        self._open: dict[TurnId, _Open] = {}

    async def admit(self, offer: TurnOffer) -> Ticket:
        """See SchedulerLink."""
        trace = offer.trace
        if trace is None:
            return await self._link.admit(offer)
        if offer.age_s:  # its engine was busy, or it was recalled: that try has its span, and this one stands below it
            trace = trace.below(fresh_span())
            offer = dataclasses.replace(offer, trace=trace)
        known = self._open[offer.turn] = _Open(offer, trace)
        try:
            ticket = await self._link.admit(offer)
        except TurnRefusedError as error:
            self._refused(offer.turn, error)
            raise
        known.attributes[words.RUN] = known.attributes[words.CONVERSATION] = ticket.run
        if ticket.parent is not None:
            known.attributes[words.PARENT] = ticket.parent
        ticket.placement.add_done_callback(lambda placement: self._placed(offer.turn, placement))
        return ticket

    def report(self, report: TurnReport) -> None:
        """See SchedulerLink."""
        if isinstance(report, TurnsRenewed):
            self._link.report(report)
            return
        known = self._open.get(report.turn)
        if known is None:
            self._link.report(report)
            return
        self._link.report(dataclasses.replace(report, trace_id=known.at.trace))
        match report:
            case FirstTokenSeen():
                known.attributes[words.TIME_TO_FIRST_CHUNK] = known.age_s
            case TurnFinished():
                _take_in(known.attributes, report)
                self._end(report.turn)
            case TurnFailed():
                self._end(report.turn, kind="turn_failed", error=report.cause)
            case TurnAbandoned():
                self._end(report.turn, kind="client_left", error=_LEFT)
            case TurnReturned():
                self._end(report.turn, kind="recalled")
            case TurnStays() | AnswerGrew():
                pass

    def attend(self, peer: PeerId, recall: Recall) -> None:
        """See SchedulerLink."""
        self._link.attend(peer, recall)

    async def end_run(self, principal: PrincipalId, run: RunId) -> bool:
        """See SchedulerLink."""
        return await self._link.end_run(principal, run)

    async def models(self) -> Sequence[ModelName]:
        """See SchedulerLink."""
        return await self._link.models()

    async def add_replica(self, spec: ReplicaSpec) -> None:
        """See SchedulerLink."""
        await self._link.add_replica(spec)

    async def remove_replica(self, replica: ReplicaId) -> None:
        """See SchedulerLink."""
        await self._link.remove_replica(replica)

    def _placed(self, turn: TurnId, placement: "Future[Placement]") -> None:
        known = self._open.get(turn)
        if known is None or placement.cancelled():
            return
        error = placement.exception()
        if isinstance(error, TurnRefusedError):
            self._refused(turn, error)
        elif error is None:
            place = placement.result()
            known.attributes[words.REPLICA] = place.replica
            known.attributes[words.HELD_MS] = round(known.age_s * 1000)
            if place.model:
                known.attributes[words.REQUEST_MODEL] = place.model

    def _refused(self, turn: TurnId, error: TurnRefusedError) -> None:
        self._end(turn, kind=error.refusal.reason.value, error=error.refusal.message)

    def _end(self, turn: TurnId, *, kind: str = "", error: str = "") -> None:
        known = self._open.pop(turn)
        if kind:
            known.attributes[words.ERROR_TYPE] = kind
        self._tracer.ended(
            Span(
                name=words.TURN_SPAN,
                at=known.at,
                kind=SpanKind.SERVER,
                began_ns=known.began_ns,
                ended_ns=time.time_ns(),
                attributes=known.attributes,
                error=error,
            )
        )


def _take_in(attributes: dict[str, Attribute], report: TurnFinished) -> None:
    if report.finish:
        attributes[words.FINISH_REASONS] = (report.finish,)
    if report.tool_calls:
        attributes[words.TOOL_CALLS] = len(report.tool_calls)
    usage = report.usage
    if usage is not None:
        attributes[words.INPUT_TOKENS] = usage.prompt_tokens
        attributes[words.OUTPUT_TOKENS] = usage.completion_tokens
        if usage.cached_tokens is not None:
            attributes[words.CACHED_TOKENS] = usage.cached_tokens
