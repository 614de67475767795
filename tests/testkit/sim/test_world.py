"""A simulated world."""

import msgspec
import pytest

from luftpause.core.model.turns import ServiceClass
from luftpause.testkit.sim import world as module
from luftpause.testkit.sim.agent_groups import Fan
from luftpause.testkit.sim.arms import ARMS
from luftpause.testkit.sim.past import EndedRun
from luftpause.testkit.sim.scenario import Faults, Outage
from luftpause.testkit.sim.world import World
from testkit.sim.worlds import crowd, family, group, world_of


@pytest.mark.parametrize("arm", ARMS)
def test_every_run_that_began_ends_and_nothing_is_left(arm: str) -> None:
    world = world_of(crowd(), arm, checked=True)
    world.run_until(30.0)
    assert world.unfinished
    world.drain()
    assert world.unfinished == 0
    assert len(world.ended) > 20
    assert not any(run.failed for run in world.ended)


@pytest.mark.parametrize("arm", ARMS)
def test_trouble_loses_no_turn_and_serves_none_twice(arm: str) -> None:
    faults = Faults(refused=0.05, cut=0.05, retry_s=0.5)
    outages = (Outage(replica=0, at_s=10.0, for_s=5.0), Outage(replica=1, at_s=12.0, for_s=10.0))
    agents = (group(count=12), group("people", "interactive", runs_per_min=60.0, system_tokens=64))
    world = world_of(crowd(*agents, faults=faults, outages=outages), arm, checked=True)
    world.run_until(40.0)
    world.drain()
    assert world.failed_turns > 20
    assert {run.service_class for run in world.ended} == set(ServiceClass)


def test_an_agent_gives_up_at_last() -> None:
    world = world_of(crowd(faults=Faults(refused=1.0, retry_s=0.1, attempts=3)), "turn-admission", checked=True)
    world.run_until(5.0)
    world.drain()
    assert world.ended
    assert all(run.failed and run.turns == 3 for run in world.ended)


def test_a_closed_loop_has_as_many_runs_as_agents() -> None:
    world = world_of(crowd(group(count=5)), "direct")
    for at in (3.0, 10.0, 20.0):
        world.run_until(at)
        assert world.unfinished == 5


def test_an_open_loop_begins_as_many_runs_whatever_serves_them() -> None:
    begun = set()
    for arm in ARMS:
        world = world_of(crowd(group(runs_per_min=120.0)), arm)
        world.run_until(60.0)
        begun.add(len(world.ended) + world.unfinished)
    assert len(begun) == 1
    assert 90 < begun.pop() < 150


def test_a_run_that_stays_computes_nothing_twice_and_one_that_moves_does() -> None:
    def reprefilled(arm: str) -> int:
        world = world_of(crowd(group(count=2), kv_tokens=100_000), arm)
        world.run_until(30.0)
        return sum(run.reprefilled_tokens for run in world.ended)

    assert reprefilled("sglang-router") == 0
    assert reprefilled("direct") > 5_000


def test_a_run_that_never_ends_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DRAIN_S_MAX", 5.0)
    world = world_of(crowd(group(count=1, tool_s=3600.0)), "direct")
    world.run_until(5.0)
    with pytest.raises(AssertionError, match=r"never ended: \['batch-0'\]"):
        world.drain()


def test_a_tool_call_longer_than_a_run_is_remembered_does_no_harm() -> None:
    world = world_of(crowd(group(count=2, tool_s=4000.0)), "turn-admission")
    world.run_until(5000.0)
    world.drain()
    assert len(world.ended) >= 2


@pytest.mark.parametrize("arm", ["direct", "turn-admission"])
def test_a_parent_goes_on_when_enough_of_its_children_have_ended(arm: str) -> None:
    everyone = world_of(family(Fan(children=3)), arm, checked=True)
    everyone.run_until(40.0)
    anyone = world_of(family(Fan(children=3), awaits="any"), arm, checked=True)
    anyone.run_until(40.0)
    for world, awaited in ((everyone, 3), (anyone, 1)):
        parents = [run for run in world.ended if run.parent is None]
        assert parents
        for parent in parents:
            ends = sorted(run.ended_at for run in world.ended if run.parent == parent.run)
            assert ends[awaited - 1] < parent.ended_at
        world.drain()
    assert any(run.ended_at > min(p.ended_at for p in anyone.ended if p.run == run.parent) for run in _children(anyone))


def _children(world: World) -> list[EndedRun]:
    return [run for run in world.ended if run.parent is not None]


def test_a_stale_probe_sees_what_the_last_one_saw() -> None:
    fresh = world_of(crowd(), "turn-admission", checked=True)
    stale = world_of(crowd(faults=Faults(stale_probes=1.0)), "turn-admission", checked=True)
    for world in (fresh, stale):
        world.run_until(30.0)
    assert stale.held_turns == 0
    assert fresh.held_turns > 0


def test_whoever_decides_may_be_killed_at_any_time_and_loses_nothing() -> None:
    scenario = msgspec.structs.replace(crowd(), restarts_s=(11.0, 11.5, 20.0))
    world = world_of(scenario, "turn-admission", checked=True)
    world.run_until(40.0)
    world.drain()
    assert world.failed_turns == 0


def test_a_turn_that_is_cut_fails_and_is_offered_again() -> None:
    world = world_of(crowd(group(count=1)), "direct")
    while not world.offers:
        world.run_until(world.now + 0.01)
    turn = next(iter(world._turns.values()))
    world.cut(turn)
    world.run_until(world.now + 60.0)
    assert world.failed_turns == 1
    assert turn.run.run_id in {ended.run for ended in world.ended}
