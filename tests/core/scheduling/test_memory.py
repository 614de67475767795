"""What a scheduler leaves the next one."""

import math
from dataclasses import replace

import pytest

from core.scheduling.builders import World, arrived, failed, finished, probed, spec
from luftpause.core.model.ids import ReplicaId, ToolName
from luftpause.core.scheduling.events import KnownReplica, KnownTool, MemoryRestored
from luftpause.core.scheduling.memory import to_remember
from luftpause.core.scheduling.state import Limits, Window
from luftpause.core.scheduling.tool_history import BUCKETS, HISTORIES_MAX
from luftpause.core.scheduling.view import view
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits

A = ReplicaId("a")
ZEROES = (0.0,) * BUCKETS
LOOK = KnownTool(tool=ToolName("look"), returned=1, returns=ZEROES, losses=ZEROES, unit=1.0, age_s=5.0)


def taught() -> World:
    """A scheduler that knows how long two tools take, and whose only replica refused a turn."""
    world = World(spec("a"))
    world.later(1000)
    for number, tool in enumerate(("look", "ask", "look")):
        world.tell_all([arrived(f"t{number}", "r"), finished(f"t{number}", tools=(tool,))])
        world.later(7)
    world.tell_all([arrived(f"x{number}") for number in range(4)])
    world.tell(failed("x0", retry_after_s=1.0))
    return world


def test_the_next_scheduler_knows_the_tools_and_the_windows_as_the_last_one_did() -> None:
    before = taught()
    left = to_remember(before.state, before.now)
    after = World(spec("a"), healthy=False)
    after.tell(left)
    assert after.state.replicas[A].window is None
    after.tell(probed("a"))
    assert after.state.replicas[A].window == before.state.replicas[A].window == Window(2, refused_at=4)
    assert after.state.replicas[A].placed == before.state.replicas[A].placed
    rows = [(row.tool, row.returned, row.p50_s, row.p90_s) for row in view(after.state, after.now).tools]
    known = {row.tool: row for row in view(before.state, before.now).tools}
    assert {row[0] for row in rows} == {"look", "ask"}
    assert all(returned == known[tool].returned for tool, returned, _, _ in rows)
    assert to_remember(after.state, after.now) == replace(left, tools=to_remember(after.state, after.now).tools)
    assert [each.age_s for each in to_remember(after.state, after.now).tools] == [each.age_s for each in left.tools]


def test_a_slow_start_goes_on_where_it_was() -> None:
    world = World(spec("a"), limits=Limits(slow_start=4), healthy=False)
    world.tell(MemoryRestored(replicas=(KnownReplica(replica=A, placed=9, window=(6, None, 0)),)))
    world.tell(probed("a"))
    assert world.state.replicas[A].window == Window(6)
    world.tell_all([probed("a", healthy=False), probed("a")])
    assert world.state.replicas[A].window == Window(4), "what is remembered counts once"


def test_what_we_know_ourselves_is_newer() -> None:
    world = taught()
    mine = world.state.tools
    world.tell(MemoryRestored(tools=(LOOK,), replicas=(KnownReplica(replica=A, window=(1, None, 0)),)))
    assert world.state.tools == mine
    assert not world.state.past


@pytest.mark.parametrize(
    "scribble",
    [
        replace(LOOK, returns=ZEROES[1:]),
        replace(LOOK, losses=(*ZEROES[1:], -1.0)),
        replace(LOOK, losses=(*ZEROES[1:], float("nan"))),
        replace(LOOK, returns=(*ZEROES[1:], float("inf"))),
        replace(LOOK, unit=0.5),
        replace(LOOK, unit=float("nan")),
        replace(LOOK, returned=-1),
    ],
)
def test_what_makes_no_sense_of_a_tool_is_left_out(scribble: KnownTool) -> None:
    world = World()
    world.tell(MemoryRestored(tools=(scribble, replace(LOOK, tool=ToolName("ask")))))
    assert list(world.state.tools.histories) == ["ask"]


@pytest.mark.parametrize("window", [(0, None, 0), (3, 2, 0), (3, 5, 3), (3, 5, -1), (0, 5, 0)])
def test_a_window_that_makes_no_sense_is_none(window: tuple[int, int | None, int]) -> None:
    world = World(spec("a"), healthy=False)
    world.tell(MemoryRestored(replicas=(KnownReplica(replica=A, placed=-5, window=window),)))
    world.tell(probed("a"))
    assert (world.state.replicas[A].window, world.state.replicas[A].placed) == (None, 0)


def test_no_more_tools_are_taken_in_than_are_remembered() -> None:
    world = World()
    tools = tuple(replace(LOOK, tool=ToolName(f"tool-{number}")) for number in range(HISTORIES_MAX + 5))
    world.tell(MemoryRestored(tools=tools))
    assert len(world.state.tools.histories) == HISTORIES_MAX


def test_what_was_learned_of_an_engines_memory_outlives_us_and_what_makes_no_sense_does_not() -> None:
    limits = Limits(working_set=WorkingSetLimits())
    world = World(spec("a"), limits=limits, healthy=False)
    world.tell(MemoryRestored(replicas=(KnownReplica(replica=ReplicaId("a"), placed=3, speed=5000.0, bears=9000),)))
    world.tell(probed("a"))
    seat = world.state.replicas[ReplicaId("a")].seat
    assert (seat.speed, seat.window) == (5000.0, 9000)
    known = to_remember(world.state, world.now).replicas[0]
    assert (known.speed, known.bears) == (5000.0, 9000)
    other = World(spec("a"), limits=limits, healthy=False)
    other.tell(MemoryRestored(replicas=(KnownReplica(replica=ReplicaId("a"), speed=math.nan, bears=-1),)))
    other.tell(probed("a"))
    assert other.state.replicas[ReplicaId("a")].seat.window is None
    assert other.state.replicas[ReplicaId("a")].seat.speed == 0.0
