"""What each tool teaches, and who is out on it."""

from bisect import bisect_right
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.scheduling.builders import World, arrived, finished, forgotten, known_run, open_turn, probed, spec
from luftpause.core.model.ids import Instant, PeerId, RunId, ToolName, TurnId
from luftpause.core.model.tool_names import TOOLS_MAX
from luftpause.core.scheduling.events import PeerResynced, RunEnded, RunPhase, TurnAbandoned, WokeUp
from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.tool_history import (
    BOUNDS_S,
    BUCKETS,
    HALVED_AFTER,
    HISTORIES_MAX,
    NOTHING_HEARD,
    PRIOR,
    PRIOR_WEIGHT,
    History,
    Tools,
    Weights,
    bucket_of,
    taught,
)

SEARCH = ToolName("wiki__search")
PAUSES = st.lists(st.tuples(st.floats(0, 1e5), st.booleans()), max_size=40)


def learned(pauses: list[tuple[float, bool]]) -> History:
    history = NOTHING_HEARD
    for seconds, is_lost in pauses:
        history = taught(history, seconds, Instant(0.0), is_lost=is_lost)
    return history


def weights_of(pauses: list[tuple[float, bool]], *, lost: bool) -> list[float]:
    """What each bucket must weigh, in units of an observation that comes next."""
    found = [0.0] * BUCKETS
    for age, (seconds, is_lost) in enumerate(reversed(pauses), 1):
        if is_lost is lost:
            found[sum(bound <= seconds for bound in BOUNDS_S)] += 0.5 ** (age / HALVED_AFTER)
    return found


def test_bounds_grow_from_a_moment_to_hours() -> None:
    assert (BOUNDS_S[0], BOUNDS_S[-1]) == (1 / 32, 8192.0)
    assert all(high / low == pytest.approx(2**0.5) for low, high in pairwise(BOUNDS_S))
    assert [bucket_of(seconds) for seconds in (0.0, 1 / 32, 1e9)] == [0, 1, BUCKETS - 1]
    assert sum(PRIOR) == pytest.approx(PRIOR_WEIGHT)
    assert min(PRIOR) > 0


@given(st.floats() | st.sampled_from(BOUNDS_S))
def test_a_duration_falls_into_the_last_bucket_that_begins_no_later(seconds: float) -> None:
    assert bucket_of(seconds) == bisect_right(BOUNDS_S, seconds)


@given(PAUSES)
def test_a_pause_weighs_less_with_each_that_follows(pauses: list[tuple[float, bool]]) -> None:
    history = learned(pauses)
    assert [weight / history.unit for weight in history.returns] == pytest.approx(weights_of(pauses, lost=False))
    assert [weight / history.unit for weight in history.losses] == pytest.approx(weights_of(pauses, lost=True))
    assert history.returned == sum(not is_lost for _, is_lost in pauses)


def test_weights_never_grow_without_end() -> None:
    pauses = [(float(number % 7), number % 3 == 0) for number in range(5000)]
    history = learned(pauses)
    assert history.unit < 2**21
    assert [weight / history.unit for weight in history.returns] == pytest.approx(weights_of(pauses, lost=False))


STARTS = st.lists(st.tuples(st.sampled_from("abc"), st.floats(-50, 500)), max_size=30)


@given(STARTS, st.floats(500, 1000))
def test_who_is_back_is_out_no_more(starts: list[tuple[str, float]], now: float) -> None:
    tools = Tools(step_s=2.5)
    for tool, since in starts:
        tools = tools.left(ToolName(tool), Instant(since))
    for tool in "abc":
        running = tools.running(Instant(now)).get(ToolName(tool), [])
        assert sum(count for _, count in running) == sum(each == tool for each, _ in starts)
        seen_s = sum(elapsed_s * count for elapsed_s, count in running)
        real = [now - since for each, since in starts if each == tool]
        assert sum(real) - 2.5 * len(real) - 1e-6 <= seen_s <= sum(real) + 1e-6
    for tool, since in sorted(starts):
        tools = tools.back(ToolName(tool), Instant(since))
    assert tools == Tools(step_s=2.5)


def test_the_tool_that_was_not_heard_of_for_longest_is_forgotten() -> None:
    tools = Tools()
    for number in range(HISTORIES_MAX):
        tools = tools.taught(ToolName(f"t{number}"), 1.0, Instant(float(number)))
    tools = tools.taught(ToolName("t0"), 1.0, Instant(5000.0))
    assert len(tools.histories) == HISTORIES_MAX
    tools = tools.taught(ToolName("new"), 1.0, Instant(0.0))
    assert len(tools.histories) <= HISTORIES_MAX
    assert "new" in tools.histories
    assert "t0" in tools.histories
    assert "t1" not in tools.histories
    assert f"t{HISTORIES_MAX - 1}" in tools.histories


def slowest(tools: Tools, *names: str) -> str | None:
    return tools.slowest([ToolName(name) for name in names])


def test_of_several_tools_the_slowest_is_taught() -> None:
    tools = Tools()
    assert slowest(tools) is None
    assert slowest(tools, "a", "b") == "a"
    assert slowest(tools, "wiki__search") == SEARCH
    for _ in range(5):
        tools = tools.taught(ToolName("quick"), 0.5, Instant(0.0)).taught(ToolName("slow"), 300.0, Instant(0.0))
        tools = tools.taught(ToolName("stuck"), 900.0, Instant(0.0), is_lost=True)
    assert slowest(tools, "quick", "slow", "unknown") == "slow"
    assert slowest(tools, "quick", "unknown") == "unknown"
    assert slowest(tools, "slow", "stuck") == "stuck"
    assert slowest(tools, *["quick"] * TOOLS_MAX, "slow") == "quick"


def out(world: World, tool: str = SEARCH) -> list[tuple[float, int]]:
    return list(world.state.tools.running(world.now).get(ToolName(tool), []))


def history(world: World, tool: str = SEARCH) -> tuple[list[int], list[int]]:
    """Return the buckets of what came back, and of what was given up."""
    known = world.state.tools.histories.get(ToolName(tool), NOTHING_HEARD)
    return heavy(known.returns), heavy(known.losses)


def heavy(weights: Weights) -> list[int]:
    return [at for at, weight in enumerate(weights) if weight]


def paused(*, run: str = "r") -> World:
    """A run is out on a search since 0 s."""
    world = World(spec("a"), limits=Limits(run_idle_expiry_s=128.0))
    world.place(arrived(f"{run}1", run))
    world.tell(finished(f"{run}1", tools=("wiki__search",)))
    return world


def test_a_pause_lasts_until_the_next_turn_arrives_held_or_not() -> None:
    world = paused()
    assert (out(world), history(world)) == ([(0.0, 1)], ([], []))
    world.later(5)
    assert out(world) == [(5.0, 1)]
    world.tell(probed("a", healthy=False))
    world.hold(arrived("r2", "r"))
    assert (out(world), history(world)) == ([], ([bucket_of(5)], []))
    world.later(5)
    world.tell(probed("a"))
    assert history(world) == ([bucket_of(5)], [])


def test_what_a_turn_waited_elsewhere_is_no_pause() -> None:
    world = paused()
    world.later(60)
    world.tell(arrived("r2", "r", age_s=55.0))
    assert history(world) == ([bucket_of(5)], [])
    world.tell(finished("r2", tools=("wiki__search",)))
    world.tell(arrived("r3", "r", age_s=1e6))
    assert history(world) == ([0, bucket_of(5)], [])


def test_a_turn_that_is_refused_is_no_return() -> None:
    world = paused()
    world.later(5)
    world.tell(arrived("r2", "r", model="nope"))
    assert (out(world), history(world)) == ([(5.0, 1)], ([], []))


def test_a_run_that_never_comes_back_is_given_up_not_returned() -> None:
    world = paused()
    world.later(5)
    world.tell(RunEnded(run=RunId("r")))
    assert (out(world), history(world)) == ([], ([], [bucket_of(5)]))
    world = paused()
    world.later(129)
    assert forgotten(world.tell(WokeUp())) == ["r"]
    assert (out(world), history(world)) == ([], ([], [bucket_of(129)]))


def test_only_a_run_at_rest_is_out() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("r1", "r"), arrived("r2", "r"), finished("r1", tools=("wiki__search",))])
    assert out(world) == []
    world.tell(finished("r2", tools=("other",)))
    assert (out(world), out(world, "other")) == ([], [(0.0, 1)])
    world.tell_all([arrived("r3", "r"), finished("r3")])
    assert out(world, "other") == []
    world.tell_all([arrived("q", "q"), finished("q", tools=2)])
    assert world.phase("q") is RunPhase.PAUSED
    assert not world.state.tools.out


def test_a_continuation_that_leaves_the_queue_does_not_begin_the_pause_again() -> None:
    world = paused()
    world.tell(probed("a", healthy=False))
    world.hold(arrived("r2", "r"))
    world.tell(TurnAbandoned(turn=TurnId("r2")))
    assert world.phase("r") is RunPhase.PAUSED
    assert out(world) == []
    world.later(9)
    world.hold(arrived("r3", "r"))
    assert history(world) == ([0], [])


def resynced(*, age_s: float, turn: str = "") -> PeerResynced:
    run = known_run("r", "a", age_s=age_s, tools=("mcp__wiki__search",))
    turns = (open_turn(turn, "r", "a"),) if turn else ()
    return PeerResynced(peer=PeerId("p"), turns=turns, runs=(run,))


def test_a_restarted_scheduler_counts_a_pause_from_its_beginning() -> None:
    world = World(spec("a"), limits=Limits(run_idle_expiry_s=128.0))
    world.tell(resynced(age_s=60.0))
    assert out(world) == [(60.0, 1)]
    world.later(10)
    world.place(arrived("r2", "r", age_s=4.0))
    assert history(world) == ([bucket_of(66)], [])


def test_a_resync_that_is_late_or_said_twice_changes_nothing() -> None:
    world = paused()
    world.later(8)
    before = world.state.tools
    for age_s in (8.0, 20.0, 8.0):
        world.tell(resynced(age_s=age_s))
        assert world.state.tools == before
    world.tell(resynced(age_s=3.0))
    assert (out(world), history(world)) == ([(3.0, 1)], ([], []))


def test_a_run_that_is_in_flight_elsewhere_is_out_no_more_and_taught_nothing() -> None:
    world = paused()
    world.later(8)
    world.tell(resynced(age_s=0.0, turn="r9"))
    assert (out(world), history(world)) == ([], ([], []))
