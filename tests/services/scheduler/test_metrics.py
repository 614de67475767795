from dataclasses import replace

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, CallerId, Instant, LauncherId, ModelName, RunId, TurnId
from luftpause.core.model.turns import ServiceClass, Usage
from luftpause.core.scheduling.events import TurnFinished
from luftpause.core.scheduling.residency.actions import LoadModel, UnloadModel
from luftpause.core.scheduling.residency.reasons import LoadReason, UnloadReason, UnloadWhy
from luftpause.core.scheduling.state import Limits, empty_state
from luftpause.services.scheduler.metrics import SchedulerMetrics
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.scheduler.tally import DecisionTally
from services.scheduler.running import crowd, offer, run, spec, started

A, B = ModelName("a"), ModelName("b")
HERE = LauncherId("here")


def lines(metrics: SchedulerMetrics) -> list[str]:
    return metrics.render().decode().splitlines()


def shown(tally: DecisionTally) -> list[str]:
    return lines(SchedulerMetrics(tally, lambda: empty_state(Limits()), lambda: Instant(0.0)))


def test_orders_are_counted_by_their_reason() -> None:
    async def story() -> list[str]:
        desk = started(spec("a"))
        crowd(desk)
        desk.admit(offer("t1", run="r"))
        desk.end_run(ANONYMOUS_PRINCIPAL, RunId("r"))
        return lines(desk.metrics)

    seen = run(story)
    family = "luftpause_scheduler_decision_reasons_total"
    assert f'{family}{{kind="place",reason="least_loaded"}} 1.0' in seen
    assert f'{family}{{kind="hold",reason="waiting_for_room"}} 1.0' in seen
    assert f'{family}{{kind="refuse",reason="run_ended"}} 1.0' in seen


def test_loads_and_evictions_are_counted_by_model() -> None:
    tally = DecisionTally()
    eviction = UnloadWhy(reason=UnloadReason.MAKES_ROOM, room_for=B)
    tally.decided(0.0, [UnloadModel(launcher=HERE, model=A, why=eviction, firmly=False)])
    tally.decided(0.0, [LoadModel(launcher=HERE, model=B, why=LoadReason.TURNS_WAIT)])
    seen = shown(tally)
    assert 'luftpause_model_loads_total{model="b"} 1.0' in seen
    assert 'luftpause_model_unloads_total{model="a",reason="makes_room"} 1.0' in seen
    assert 'luftpause_scheduler_decision_reasons_total{kind="load",reason="turns_wait"} 1.0' in seen


def test_tokens_tell_what_was_cached_as_far_as_engines_say() -> None:
    tally = DecisionTally()
    tally.used(ServiceClass.BATCH, Usage(prompt_tokens=100, completion_tokens=7, cached_tokens=80))
    tally.used(ServiceClass.BATCH, Usage(prompt_tokens=30, completion_tokens=3))
    seen = shown(tally)
    for kind, count in (("prompt_cached", 80), ("prompt_computed", 20), ("prompt_unknown", 30), ("completion", 10)):
        assert f'luftpause_tokens_total{{class="batch",kind="{kind}"}} {count}.0' in seen


def test_a_turn_s_tokens_count_once_however_often_its_end_is_told() -> None:
    async def story() -> list[str]:
        desk = started(spec("a"))
        desk.admit(offer("t1"))
        for _ in range(2):
            desk.report(TurnFinished(turn=TurnId("t1"), usage=Usage(prompt_tokens=5, completion_tokens=2)))
        return lines(desk.metrics)

    assert 'luftpause_tokens_total{class="interactive",kind="completion"} 2.0' in run(story)


def held(desk: SchedulerService, turn: str, caller: str, principal: str = ANONYMOUS_PRINCIPAL) -> None:
    desk.admit(replace(offer(turn, principal=principal, age_s=3.0), caller=CallerId(caller)))


def test_held_turns_are_told_by_caller_within_bounds() -> None:
    async def story() -> list[str]:
        desk = started(spec("a"))
        crowd(desk)
        held(desk, "x", "same")
        held(desk, "y", "same", principal="somebody else")
        for number in range(60):
            held(desk, f"t{number}", f"caller {number}")
        return lines(desk.metrics)

    rows = [line for line in run(story) if line.startswith("luftpause_held_turns_by_caller{")]
    assert 'luftpause_held_turns_by_caller{caller="same",class="interactive"} 2.0' in rows
    assert len(rows) <= 51
    assert sum(float(row.rpartition(" ")[2]) for row in rows) == 62
    (oldest,) = [line for line in run(story) if line.startswith('luftpause_held_oldest_seconds{class="interactive"}')]
    assert float(oldest.rpartition(" ")[2]) >= 3.0
