"""Agents that play a scenario's runs at fake engines, in process."""

from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.testkit.bench.over_http.agents import Agents, Place, headers_of
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.fake_engine.server import fake_engine
from luftpause.testkit.fake_engine.settings import Settings
from luftpause.testkit.sim.agent_groups import Fan
from luftpause.testkit.sim.figures import figures_of
from luftpause.testkit.sim.past import Past
from luftpause.testkit.sim.plans import draw_plan
from luftpause.testkit.sim.scenario import Faults, Scenario
from luftpause.testkit.sim.sources import Drawn
from testkit.running import run
from testkit.sim.worlds import crowd, family, group

FAST = EngineFigures(step_s=0.0005, decode_s=0.0, prefill_tps=1e6, kv_tokens=200_000)
SPEED = 20.0


def played(scenario: Scenario, *, doors: int = 1, seconds: float = 1.5, model: str = "fake-1b") -> Past:
    async def play() -> Past:
        engines = HttpEngines()
        settings = Settings(figures=FAST, ttft_s=0.0, stream_interval=16)
        try:
            async with fake_engine(settings) as one, fake_engine(settings) as two:
                place = Place(
                    doors=(one, two)[:doors],
                    model=model,
                    real=False,
                    speed=SPEED,
                    engine=FAST,
                    faults=scenario.faults,
                )
                return await Agents(place, Drawn(scenario, 1), engines).play(seconds * SPEED)
        finally:
            await engines.close()

    return run(play())


def test_a_closed_loop_plays_run_after_run_and_notes_what_the_simulator_notes() -> None:
    past = played(crowd(group(count=3)))
    assert len(past.ended) >= 3
    assert not any(ended.failed for ended in past.ended)
    assert past.failed_turns == 0
    assert past.unfinished == len(past.under_way) == 3
    assert [ended.run for ended in past.ended if ended.run == "batch-0"]
    for ended in past.ended:
        plan = draw_plan(group(count=3), 1, int(ended.run.removeprefix("batch-")))
        assert ended.turns == len(ended.turn_s) == len(plan.legs)
        assert ended.ended_at - ended.begun_at >= sum(leg.away_s or 0.0 for leg in plan.legs)
    figures = figures_of(past, crowd(group(count=3)), 0.0, 1.5 * SPEED)
    assert figures.runs_per_min > 0


def test_a_conversation_that_stays_is_found_in_the_cache_and_one_that_moves_is_not() -> None:
    stays, moves = (played(crowd(group(count=1)), doors=doors) for doors in (1, 2))
    assert sum(ended.reprefilled_tokens for ended in stays.ended) <= 16 * sum(ended.turns for ended in stays.ended)
    assert sum(ended.reprefilled_tokens for ended in moves.ended) > 100 * len(moves.ended)


def test_children_are_played_before_their_parent_goes_on() -> None:
    past = played(family(Fan(children=3)))
    parents = [ended for ended in past.ended if ended.parent is None]
    assert parents
    for parent in parents:
        children = [ended for ended in past.ended if ended.parent == parent.run]
        assert len(children) == 3
        assert max(child.ended_at for child in children) < parent.ended_at


def test_an_open_loop_begins_runs_by_the_clock() -> None:
    past = played(crowd(group("people", runs_per_min=60.0)))
    begun = len(past.ended) + len(past.under_way)
    assert 10 < begun < 60


def test_an_agent_gives_a_run_up_after_so_many_attempts() -> None:
    faults = Faults(attempts=2, retry_s=0.5)
    past = played(crowd(group(count=1), faults=faults), model="nobody-has-this", seconds=0.5)
    assert past.ended
    assert all(ended.failed for ended in past.ended)
    assert past.failed_turns >= 2 * len(past.ended)


def test_a_run_is_named_to_every_kind_of_router() -> None:
    plan = draw_plan(group("people", "interactive"), 1, 4)
    headers = dict(headers_of(plan))
    assert headers[b"x-luftpause-run-id"] == headers[b"x-smg-routing-key"] == headers[b"x-session-id"] == b"people-4"
    assert (headers[b"x-luftpause-class"], headers[b"x-smg-priority"]) == (b"interactive", b"interactive")
    assert b"x-luftpause-parent" not in headers
    groups = {each.name: each for each in family(Fan(children=1)).agents}
    child = draw_plan(groups["parent"], 1, 0, groups).legs[-2].children[0]
    assert dict(headers_of(child))[b"x-luftpause-parent"] == b"parent-0"
    assert dict(headers_of(child))[b"x-smg-priority"] == b"bulk"
