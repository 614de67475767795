"""What a tracer is told of runs. Whole trees over real processes: tests/stories/test_tracing.py."""

import asyncio

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, RunId
from luftpause.core.model.traces import span_of, trace_of
from luftpause.ports.tracing import Span
from luftpause.ports.turns import TurnFailedError, TurnReply, TurnRequest
from ports.spans import KeptSpans
from services.runtime.runtime_fakes import FakeTools, MemoryJournal, World, hold, in_time, order, runtime, text

ME = ANONYMOUS_PRINCIPAL
TRACE, OUTER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
FROM_OUTSIDE = f"00-{TRACE}-{OUTER}-01"


async def done(_: TurnRequest) -> TurnReply:
    return text("done")


async def over(world: World, run: RunId) -> None:
    assert await world.service.wait(ME, [run], "all", 5.0)


def named(tracer: KeptSpans, name: str) -> list[Span]:
    return [span for span in tracer.spans if span.name.startswith(name)]


def test_turns_and_calls_stand_below_their_run_and_it_below_who_spawned_it() -> None:
    async def live() -> None:
        tracer = KeptSpans()
        async with runtime(tracer=tracer) as world:
            run = await world.service.spawn(order(traceparent=FROM_OUTSIDE))
            await over(world, run)
            assert [span.name.split()[0] for span in tracer.spans] == ["chat", "execute_tool", "chat", "invoke_agent"]
            (whole,) = named(tracer, "invoke_agent")
            assert (whole.at.trace, whole.at.above, whole.at.span) == (TRACE, OUTER, span_of(run))
            assert {span.at.above for span in tracer.spans if span is not whole} == {whole.at.span}
            headers = [request.traceparent for request in world.turns.asked]
            assert headers == [span.at.header for span in named(tracer, "chat")]
            assert world.tools.traces == [span.at.header for span in named(tracer, "execute_tool")]

    in_time(live())


def test_a_child_stands_below_its_parent_whatever_its_request_says_and_links_there() -> None:
    async def live() -> None:
        tracer = KeptSpans()
        async with runtime(done, tracer=tracer) as world:
            parent = await world.service.spawn(order())
            child = await world.service.spawn(order(parent=parent, traceparent=FROM_OUTSIDE))
            await over(world, parent)
            await over(world, child)
            below = next(span for span in named(tracer, "invoke_agent") if span.at.span == span_of(child))
            assert (below.at.trace, below.at.above) == (trace_of(parent), span_of(parent))
            assert below.link is not None
            assert below.link.span == OUTER

    in_time(live())


def test_a_run_goes_on_in_its_trace_after_a_restart_and_is_told_of_once() -> None:
    async def live() -> None:
        tracer, journal, asked = KeptSpans(), MemoryJournal(), asyncio.Event()

        async def stay(request: TurnRequest) -> TurnReply:
            asked.set()
            return await hold(request)

        async with runtime(stay, journal=journal, tracer=tracer) as world:
            run = await world.service.spawn(order())
            await asked.wait()
        assert tracer.names == ["chat served-model"]
        assert tracer.spans[0].error == "cancelled"
        async with runtime(done, journal=journal, tracer=tracer) as world:
            await over(world, run)
        (whole,) = named(tracer, "invoke_agent")
        assert {span.at.above for span in named(tracer, "chat")} == {whole.at.span}
        assert {span.at.trace for span in tracer.spans} == {trace_of(run)}

    in_time(live())


def test_a_run_that_goes_on_after_its_end_has_another_span() -> None:
    async def live() -> None:
        tracer = KeptSpans()
        async with runtime(done, tracer=tracer) as world:
            run = await world.service.spawn(order())
            await over(world, run)
            await world.service.send(ME, run, "more")
            await over(world, run)
        first, second = named(tracer, "invoke_agent")
        assert first.at.trace == second.at.trace
        assert first.at.span != second.at.span
        assert [span.at.above for span in named(tracer, "chat")] == [first.at.span, second.at.span]
        assert first.ended_ns <= second.began_ns

    in_time(live())


def test_failures_are_told_without_what_a_model_or_a_tool_said() -> None:
    async def live() -> None:
        async def broken(_: TurnRequest) -> TurnReply:
            raise TurnFailedError("no model is there")

        tracer = KeptSpans()
        async with runtime(broken, tracer=tracer) as world:
            run = await world.service.spawn(order())
            await over(world, run)
        turn, whole = tracer.spans
        assert (turn.attributes["error.type"], turn.error) == ("turn_failed", "no model is there")
        assert whole.attributes["error.type"] == "run_failed"

        tracer = KeptSpans()
        async with runtime(tools=FakeTools(fails="a secret"), tracer=tracer) as world:
            run = await world.service.spawn(order())
            await over(world, run)
        (call,) = named(tracer, "execute_tool")
        assert (call.attributes["error.type"], call.error) == ("tool_error", "the tool failed")

        tracer = KeptSpans()
        async with runtime(hold, tracer=tracer) as world:
            run = await world.service.spawn(order())
            await world.service.cancel(ME, run)
        (whole,) = named(tracer, "invoke_agent")
        assert (whole.attributes["error.type"], whole.error) == ("cancelled", "cancelled: on request")

    in_time(live())


def test_who_does_not_want_a_trace_recorded_is_told_so_further_on() -> None:
    async def live() -> None:
        tracer = KeptSpans()
        async with runtime(done, tracer=tracer) as world:
            run = await world.service.spawn(order(traceparent=FROM_OUTSIDE[:-2] + "00"))
            await over(world, run)
            assert world.turns.asked[0].traceparent.endswith("-00")
            assert not any(span.at.sampled for span in tracer.spans)

    in_time(live())


def test_without_a_tracer_the_spawner_s_trace_goes_on_as_it_is() -> None:
    async def live() -> None:
        async with runtime() as world:
            run = await world.service.spawn(order(traceparent=FROM_OUTSIDE))
            await over(world, run)
            assert {request.traceparent for request in world.turns.asked} == {FROM_OUTSIDE}
            assert world.tools.traces == [FROM_OUTSIDE]

    in_time(live())
