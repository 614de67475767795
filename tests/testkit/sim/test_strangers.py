"""Requests that others send to an engine past the router."""

from dataclasses import replace

from luftpause.testkit.sim.scenario import Strangers, load_scenario
from luftpause.testkit.sim.setting import setting_of
from luftpause.testkit.sim.sources import Drawn
from luftpause.testkit.sim.strangers import strangers_of
from luftpause.testkit.sim.world import World

TABLE = Strangers(replica=0, count=3, at_s=5.0, for_s=20.0, context_tokens=(100, 200), reply_tokens=(10, 20))


def test_each_has_requests_of_its_own_and_the_same_seed_draws_the_same() -> None:
    strangers = [stranger for _, stranger in strangers_of((TABLE, TABLE), 1)]
    asked = [stranger.asks() for _ in range(3) for stranger in strangers]
    assert len({request.key for request in asked}) == len({request.prompt for request in asked}) == 18
    assert all(request.key < 0 and 100 <= request.prompt_tokens <= 200 for request in asked)
    assert strangers_of((TABLE, TABLE), 1)[0][1].asks() == asked[0]


def test_they_keep_an_engine_busy_for_their_time_and_are_nobodys_turns() -> None:
    scenario = load_scenario("w6-light")
    seen: dict[int, int] = {}
    for count in (0, 3):
        strangers = (TABLE,) * bool(count)
        world = World(replace(setting_of(scenario), strangers=strangers), Drawn(scenario, 1), "direct", 1)
        world.run_until(20.0)
        seen[count] = len(world._strangers)
        world.run_until(60.0)
        assert not world._strangers
    assert seen == {0: 0, 3: 3}


def test_they_come_back_after_an_outage() -> None:
    scenario = load_scenario("w7-worst")
    world = World(setting_of(scenario), Drawn(scenario, 1), "direct", 1)
    world.run_until(60.5)
    assert not world._strangers
    world.run_until(70.0)
    assert len(world._strangers) == 4
