"""Spans of runs, of their turns and of their tool calls.

A run's place in its trace follows from what is on record of it: the trace of whoever spawned the run at the top of its
tree, else one that belongs to that run's name, and a span id that belongs to its own. So a run that goes on in another
process goes on in its trace, and whichever process sees its end tells of it.
"""

import asyncio
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from luftpause.core.model.ids import RunId
from luftpause.core.model.traces import TraceContext, context_in, span_of, trace_of
from luftpause.core.runs.actions import CallTool, TakeTurn
from luftpause.core.runs.events import Event, RunCancelled, RunFailed
from luftpause.core.runs.state import Run, State
from luftpause.core.runs.tree import ancestors
from luftpause.ports.tools import ToolOutcome
from luftpause.ports.tracing import Attribute, Span, SpanKind, Tracer
from luftpause.ports.turns import TurnFailedError, TurnReply
from luftpause.telemetry import span_words as words
from luftpause.telemetry.trace_ids import fresh_span

_CUT_OFF: Final = "cancelled"


class Work:
    """A turn or a tool call under way, as a block. Nobody is told of it: most runtimes have no tracer.

    Attributes:
        header: its `traceparent`, empty for none.
    """

    __slots__ = ("header",)

    def __init__(self, header: str) -> None:
        self.header = header

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """It is over."""

    def replied(self, reply: TurnReply) -> None:
        """Take in a model's reply."""

    def returned(self, outcome: ToolOutcome) -> None:
        """Take in how a tool ended. What it said is nobody's business: spans hold no content."""


class _ToldWork(Work):
    """One whose span is told when the block is left."""

    __slots__ = ("_at", "_attributes", "_began_ns", "_error", "_kind", "_name", "_tracer")

    def __init__(
        self, tracer: Tracer, at: TraceContext, name: str, kind: SpanKind, attributes: Mapping[str, Attribute]
    ) -> None:
        super().__init__(at.header)
        self._tracer = tracer
        self._at = at
        self._name = name
        self._kind = kind
        self._attributes = dict(attributes)
        self._error = ""
        self._began_ns = time.time_ns()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        match error:
            case asyncio.CancelledError():
                self._failed(_CUT_OFF, _CUT_OFF)
            case TurnFailedError():
                self._failed("turn_failed", str(error))
            case Exception():
                self._failed(type(error).__name__, str(error))
            case _:
                pass
        self._tracer.ended(
            Span(
                name=self._name,
                at=self._at,
                kind=self._kind,
                began_ns=self._began_ns,
                ended_ns=time.time_ns(),
                attributes=self._attributes,
                error=self._error,
            )
        )

    def replied(self, reply: TurnReply) -> None:
        if reply.finish:
            self._attributes[words.FINISH_REASONS] = (reply.finish,)
        usage = reply.usage
        if usage is not None:
            self._attributes[words.INPUT_TOKENS] = usage.prompt_tokens
            self._attributes[words.OUTPUT_TOKENS] = usage.completion_tokens
            if usage.cached_tokens is not None:
                self._attributes[words.CACHED_TOKENS] = usage.cached_tokens

    def returned(self, outcome: ToolOutcome) -> None:
        if outcome.unknown:
            self._failed("outcome_unknown", "the call broke off and may have taken effect")
        elif outcome.failed:
            self._failed("tool_error", "the tool failed")

    def _failed(self, kind: str, error: str) -> None:
        self._attributes[words.ERROR_TYPE] = kind
        self._error = error


class RunSpans:
    """Tells of the runs of one runtime. Without a tracer it tells nobody, and passes on the trace of who spawned."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer
        self._went_on: dict[RunId, int] = {}

    def turn(self, state: State, action: TakeTurn) -> Work:
        """Tell of a turn when the block is left."""
        run = state.runs[action.run]
        if self._tracer is None:
            return Work(run.spawn.traceparent)
        attributes: dict[str, Attribute] = {
            words.OPERATION: words.CHAT,
            words.PROVIDER: words.OURSELVES,
            words.REQUEST_MODEL: action.model,
            words.CONVERSATION: action.run,
        }
        at = place_of(run, state).below(fresh_span())
        return _ToldWork(self._tracer, at, f"{words.CHAT} {action.model}", SpanKind.CLIENT, attributes)

    def call(self, state: State, action: CallTool) -> Work:
        """Tell of a tool call when the block is left."""
        run = state.runs[action.run]
        if self._tracer is None:
            return Work(run.spawn.traceparent)
        attributes: dict[str, Attribute] = {
            words.OPERATION: words.EXECUTE_TOOL,
            words.TOOL_NAME: action.tool,
            words.TOOL_CALL: action.call,
            words.TOOL_TYPE: "extension",
            words.CONVERSATION: action.run,
        }
        at = place_of(run, state).below(fresh_span())
        return _ToldWork(self._tracer, at, f"{words.EXECUTE_TOOL} {action.tool}", SpanKind.INTERNAL, attributes)

    def happened(self, event: Event, before: State, after: State) -> None:
        """Take in what happened to a run: its end is told, and when it goes on after one is noted."""
        if self._tracer is None:
            return
        run, known = after.runs.get(event.run), before.runs.get(event.run)
        if run is None or known is None:
            return
        if run.follow_ups > known.follow_ups:
            if not known.is_over:
                self._tell(self._tracer, known, before)
            self._went_on[event.run] = time.time_ns()
        elif run.is_over and not known.is_over:
            self._tell(self._tracer, run, after, _failure_in(event))

    def _tell(self, tracer: Tracer, run: Run, state: State, failure: tuple[str, str] = ("", "")) -> None:
        """Tell of a run from its beginning, or from where it went on, until now."""
        kind, error = failure
        now = time.time_ns()
        began_ns = self._went_on.pop(run.spawn.run, now) if run.follow_ups else int(run.spawn.utc * 1e9)
        tracer.ended(
            Span(
                name=words.INVOKE_AGENT,
                at=place_of(run, state),
                kind=SpanKind.INTERNAL,
                began_ns=min(began_ns, now),
                ended_ns=now,
                attributes=_attributes_of(run, kind),
                error=error,
                link=_link_of(run, state),
            )
        )


def place_of(run: Run, state: State) -> TraceContext:
    """Return a run's place: below its parent, else below whoever spawned it. Each time it goes on it has another."""
    span = span_of(f"{run.spawn.run}\0{run.follow_ups}" if run.follow_ups else run.spawn.run)
    family = [run, *ancestors(state, run.spawn.run)]
    spawner = context_in(family[-1].spawn.traceparent)
    if len(family) > 1:
        top = family[-1].spawn.run
        trace = trace_of(top) if spawner is None else spawner.trace
        sampled = spawner is None or spawner.sampled
        return TraceContext(trace=trace, span=span, above=span_of(family[1].spawn.run), sampled=sampled)
    if spawner is None:
        return TraceContext(trace=trace_of(run.spawn.run), span=span)
    return spawner.below(span)


def _link_of(run: Run, state: State) -> TraceContext | None:
    """Return the span that spawned a run, where its parent's stands above it."""
    has_parent = next(ancestors(state, run.spawn.run), None) is not None
    return context_in(run.spawn.traceparent) if has_parent else None


def _attributes_of(run: Run, error_kind: str) -> dict[str, Attribute]:
    spawn = run.spawn
    attributes: dict[str, Attribute] = {
        words.OPERATION: words.INVOKE_AGENT,
        words.PROVIDER: words.OURSELVES,
        words.CONVERSATION: spawn.run,
        words.REQUEST_MODEL: run.model,
        words.RUN: spawn.run,
        words.CLASS: spawn.service_class.value,
        words.CALLER: spawn.caller,
    }
    if spawn.parent is not None:
        attributes[words.PARENT] = spawn.parent
    if not run.follow_ups:  # later they hold what was told already
        attributes[words.TURNS] = run.own.turns
        attributes[words.TOOL_CALLS] = run.own.tool_calls
        attributes[words.INPUT_TOKENS] = run.own.prompt_tokens
        attributes[words.OUTPUT_TOKENS] = run.own.completion_tokens
    if error_kind:
        attributes[words.ERROR_TYPE] = error_kind
    return attributes


def _failure_in(event: Event) -> tuple[str, str]:
    match event:
        case RunFailed():  # why may quote the model
            return "run_failed", "the run failed, its status says why"
        case RunCancelled(why=why):
            return _CUT_OFF, why
        case _:
            return "", ""
