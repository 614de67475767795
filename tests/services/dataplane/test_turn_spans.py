import asyncio
from dataclasses import replace

import pytest

from luftpause.core.model.ids import ReplicaId, RunId, TurnId
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.model.traces import TraceContext
from luftpause.core.model.turns import TurnOffer, Usage
from luftpause.core.scheduling.events import (
    FirstTokenSeen,
    TurnAbandoned,
    TurnFailed,
    TurnFinished,
    TurnReport,
    TurnReturned,
    TurnsRenewed,
    TurnStays,
)
from luftpause.ports.scheduler import TurnRefusedError
from luftpause.services.dataplane.turn_spans import TRACE_HEADER, TurnSpans, trace_in, with_trace
from ports.spans import KeptSpans
from services.dataplane.door import PlayedScheduler
from services.scheduler.running import offer, run

AT = TraceContext(trace="0af7651916cd43dd8448eb211c80319c", span="b7ad6b7169203331", above="00f067aa0ba902b7")
T1 = TurnId("t1")


def traced(turn: str = "t1") -> TurnOffer:
    return replace(offer(turn, run="r"), trace=AT)


def test_a_turn_that_ends_well_is_told_with_all_that_was_seen() -> None:
    async def story() -> None:
        scheduler, tracer = PlayedScheduler(), KeptSpans()
        link = TurnSpans(scheduler, tracer)
        await link.admit(traced())
        await asyncio.sleep(0)
        link.report(FirstTokenSeen(turn=T1))
        link.report(TurnsRenewed(turns=(T1,)))
        usage = Usage(prompt_tokens=5, completion_tokens=2, cached_tokens=4)
        link.report(TurnFinished(turn=T1, finish="stop", usage=usage))
        (span,) = tracer.spans
        assert (span.name, span.at, span.error) == ("turn", AT, "")
        wanted = {
            "gen_ai.operation.name": "chat",
            "luftpause.run": "r",
            "luftpause.turn": "t1",
            "luftpause.replica": "a",
            "gen_ai.request.model": "m",
            "gen_ai.response.finish_reasons": ("stop",),
            "gen_ai.usage.input_tokens": 5,
            "gen_ai.usage.output_tokens": 2,
            "gen_ai.usage.cache_read.input_tokens": 4,
        }
        assert wanted.items() <= span.attributes.items()
        first = span.attributes["gen_ai.response.time_to_first_chunk"]
        assert isinstance(first, float)
        assert first >= 0
        assert scheduler.offers[0].trace == AT
        told = [getattr(report, "trace_id", None) for report in scheduler.reports]
        assert told == [AT.trace, None, AT.trace]

    run(story)


@pytest.mark.parametrize(
    ("report", "kind", "error"),
    [
        (TurnFailed(turn=T1, cause="engine a: it broke"), "turn_failed", "engine a: it broke"),
        (TurnAbandoned(turn=T1), "client_left", "the client left"),
    ],
)
def test_a_turn_that_ends_badly_says_how(report: TurnReport, kind: str, error: str) -> None:
    async def story() -> None:
        tracer = KeptSpans()
        link = TurnSpans(PlayedScheduler(), tracer)
        await link.admit(traced())
        link.report(report)
        link.report(report)
        (span,) = tracer.spans
        assert (span.attributes["error.type"], span.error) == (kind, error)

    run(story)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_turn_that_is_refused_ends_with_the_refusal(at_once: bool) -> None:
    async def story() -> None:
        scheduler, tracer = PlayedScheduler(), KeptSpans()
        scheduler.hold = True
        error = TurnRefusedError(Refusal(reason=RefusalReason.EXPIRED, message="too late"))
        scheduler.breaks_with = error if at_once else None
        link = TurnSpans(scheduler, tracer)
        if at_once:
            with pytest.raises(TurnRefusedError):
                await link.admit(traced())
        else:
            ticket = await link.admit(traced())
            ticket.placement.set_exception(error)
            with pytest.raises(TurnRefusedError):
                await ticket.placement
            await asyncio.sleep(0)
        (span,) = tracer.spans
        assert (span.attributes["error.type"], span.error) == ("expired", "too late")

    run(story)


def test_a_turn_that_is_offered_again_stands_below_its_first_try() -> None:
    async def story() -> None:
        scheduler, tracer = PlayedScheduler(), KeptSpans()
        link = TurnSpans(scheduler, tracer)
        await link.admit(traced())
        link.report(TurnFailed(turn=T1, cause="busy"))
        await link.admit(replace(traced("t2"), age_s=1.5))
        link.report(TurnFinished(turn=TurnId("t2")))
        first, second = tracer.spans
        assert (second.at.trace, second.at.above) == (AT.trace, first.at.span)
        assert scheduler.offers[1].trace == second.at
        assert first.at.span != second.at.span

    run(story)


def test_what_is_of_no_trace_passes_as_it_is() -> None:
    async def story() -> None:
        scheduler, tracer = PlayedScheduler(), KeptSpans()
        link = TurnSpans(scheduler, tracer)
        await link.admit(offer("t1"))
        link.report(TurnFinished(turn=T1))
        assert await link.models() == ["a", "m"]
        assert await link.end_run(offer("t1").principal, RunId("known"))
        with pytest.raises(AssertionError, match="removes no replicas"):
            await link.remove_replica(ReplicaId("a"))
        assert scheduler.reports == [TurnFinished(turn=T1)]
        assert not tracer.spans

    run(story)


def test_an_engine_is_told_of_the_turn_and_not_of_its_client_s_span() -> None:
    trace = trace_in({TRACE_HEADER: f"00-{AT.trace}-{AT.span}-01".encode()})
    assert (trace.trace, trace.above) == (AT.trace, AT.span)
    assert trace.span != AT.span
    headers = with_trace([(b"a", b"1"), (TRACE_HEADER, b"other")], trace)
    assert headers == (
        (b"a", b"1"),
        (TRACE_HEADER, trace.header.encode()),
    )


@pytest.mark.parametrize("value", [b"", b"00-1-2-03", b"\xff"])
def test_a_header_that_says_nothing_begins_a_trace(value: bytes) -> None:
    trace = trace_in({TRACE_HEADER: value})
    assert trace.above == ""
    assert len(trace.trace) == 32


def test_a_turn_that_was_recalled_has_a_span_for_each_of_its_tries() -> None:
    async def story() -> None:
        scheduler, tracer = PlayedScheduler(), KeptSpans()
        link = TurnSpans(scheduler, tracer)
        recalled: list[TurnId] = []
        link.attend(scheduler_peer, recalled.append)
        scheduler.recall(T1)
        assert recalled == [T1]
        await link.admit(traced())
        link.report(TurnStays(turn=T1))
        assert tracer.spans == []
        link.report(TurnReturned(turn=T1))
        await link.admit(replace(traced("t2"), age_s=1.0, recalls=1))
        link.report(TurnFinished(turn=TurnId("t2")))
        first, second = tracer.spans
        assert first.attributes["error.type"] == "recalled"
        assert second.at.above == AT.span

    scheduler_peer = traced().peer
    run(story)
