from dataclasses import replace

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, RunId, TurnId
from luftpause.core.model.traces import TraceContext
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import TurnAbandoned, TurnFinished
from luftpause.services.scheduler.admit_spans import AdmitSpans
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.scheduler.settings import SchedulerSettings
from ports.spans import KeptSpans
from services.scheduler.running import crowd, offer, probed, run, spec

AT = TraceContext(trace="0af7651916cd43dd8448eb211c80319c", span="b7ad6b7169203331")


def traced(turn: str, **more: str) -> TurnOffer:
    return replace(offer(turn, run=more.get("run")), trace=AT)


def watched(tracer: KeptSpans) -> SchedulerService:
    service = SchedulerService(SchedulerSettings(), [AdmitSpans(tracer)])
    service.start()
    service.add_replica(spec("a"))
    service.probed(probed("a"))
    return service


def test_a_turn_that_is_placed_has_a_span_below_its_own() -> None:
    async def story() -> None:
        tracer = KeptSpans()
        service = watched(tracer)
        service.admit(traced("t1", run="r"))
        (span,) = tracer.spans
        assert (span.name, span.at.trace, span.at.above) == ("admit", AT.trace, AT.span)
        found = {name: span.attributes[f"luftpause.{name}"] for name in ("replica", "held_ms", "turn", "run", "why")}
        assert found == {"replica": "a", "held_ms": 0, "turn": "t1", "run": "r", "why": "least_loaded"}

    run(story)


def test_a_held_turn_s_span_begins_with_its_arrival() -> None:
    async def story() -> None:
        tracer = KeptSpans()
        service = watched(tracer)
        crowd(service)
        service.admit(replace(traced("t1"), age_s=2.0))
        assert not tracer.spans
        service.report(TurnFinished(turn=TurnId("crowd")))
        service.probed(probed("a", running=0, waiting=0))
        (span,) = tracer.spans
        held_ms = span.attributes["luftpause.held_ms"]
        assert isinstance(held_ms, int)
        assert held_ms >= 2000
        assert (span.ended_ns - span.began_ns) // 1_000_000 in (held_ms - 1, held_ms, held_ms + 1)

    run(story)


def test_a_held_turn_that_is_refused_or_left_has_a_span_that_says_so() -> None:
    async def story() -> None:
        tracer = KeptSpans()
        service = watched(tracer)
        crowd(service)
        service.admit(traced("t1", run="r"))
        service.admit(traced("t2"))
        service.end_run(ANONYMOUS_PRINCIPAL, RunId("r"))
        service.report(TurnAbandoned(turn=TurnId("t2")))
        refused, left = tracer.spans
        assert (refused.attributes["error.type"], refused.attributes["luftpause.turn"]) == ("run_ended", "t1")
        assert refused.error
        assert (left.attributes["error.type"], left.error) == ("client_left", "the client left")

    run(story)


def test_a_turn_of_no_trace_has_no_span() -> None:
    async def story() -> None:
        tracer = KeptSpans()
        watched(tracer).admit(offer("t1"))
        assert not tracer.spans

    run(story)
