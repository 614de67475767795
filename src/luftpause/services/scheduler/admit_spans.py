"""A span for each turn that the scheduler admits, refuses or sees leave: from its arrival to the decision.

A witness: the scheduler does nothing for it, and without a tracer nobody makes one.
"""

import time
from typing import Final

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.actions import PlaceTurn, RefuseTurn
from luftpause.core.scheduling.events import Event, TurnAbandoned, TurnArrived
from luftpause.core.scheduling.state import Decision, State
from luftpause.ports.tracing import Attribute, Span, SpanKind, Tracer
from luftpause.telemetry import span_words as words
from luftpause.telemetry.trace_ids import fresh_span

_LEFT: Final = "client_left"


class AdmitSpans:
    """A `Witness` that tells a tracer of each turn that belongs to a trace."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def decided(self, before: State, event: Event, now: Instant, decision: Decision) -> None:
        """See `Witness`."""
        for action in decision.actions:
            if isinstance(action, PlaceTurn):
                arrival = decision.state.turns[action.turn].arrival
                place: dict[str, Attribute] = {words.REPLICA: action.replica, words.WHY: action.why.name.lower()}
                self._tell(arrival, action.held_s, place)
            elif isinstance(action, RefuseTurn):
                held = before.held.get(action.turn)
                refusal = action.why
                if held is not None:
                    kind: dict[str, Attribute] = {words.ERROR_TYPE: refusal.reason.value}
                    self._tell(held.arrival, now - held.arrived_at, kind, refusal.message)
                elif isinstance(event, TurnArrived) and event.turn == action.turn:
                    self._tell(event, event.age_s, {words.ERROR_TYPE: refusal.reason.value}, refusal.message)
        if isinstance(event, TurnAbandoned):
            left = before.held.get(event.turn)
            if left is not None:
                self._tell(left.arrival, now - left.arrived_at, {words.ERROR_TYPE: _LEFT}, "the client left")

    def _tell(self, arrival: TurnArrived, held_s: float, found: dict[str, Attribute], error: str = "") -> None:
        trace = arrival.trace
        if trace is None:
            return
        ended_ns = time.time_ns()
        attributes: dict[str, Attribute] = {
            words.HELD_MS: round(held_s * 1000),
            words.REQUEST_MODEL: arrival.model,
            words.TURN: arrival.turn,
            words.RUN: arrival.run,
            words.CLASS: arrival.service_class.value,
            words.CALLER: arrival.caller,
            **found,
        }
        self._tracer.ended(
            Span(
                name=words.ADMIT,
                at=trace.below(fresh_span()),
                kind=SpanKind.SERVER,
                began_ns=ended_ns - round(max(0.0, held_s) * 1e9),
                ended_ns=ended_ns,
                attributes=attributes,
                error=error,
            )
        )
