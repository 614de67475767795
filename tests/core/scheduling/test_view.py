"""What people see of the state."""

import pytest

from core.scheduling.builders import BATCH, INTERACTIVE, World, arrived, crowded, finished, probed, spec
from luftpause.core.model.ids import CallerId, ModelName, ReplicaId, ToolName
from luftpause.core.model.replicas import EngineKind, Load
from luftpause.core.scheduling.events import ReplicaProbed, ReplicaRemoved, RunPhase
from luftpause.core.scheduling.reasons import (
    AwaitingReturn,
    BehindCaller,
    NoHealthyReplica,
    WaitingForHome,
    WaitingForRoom,
    WindowFull,
    explain,
)
from luftpause.core.scheduling.state import Window
from luftpause.core.scheduling.tool_returns import return_law
from luftpause.core.scheduling.view import (
    HELD_ROWS_MAX,
    OTHER_CALLERS,
    TOOLS_SHOWN,
    HeldView,
    ReplicaPhase,
    RunsView,
    held_by_class,
    view,
)

A = ReplicaId("a")


def phases(world: World) -> dict[str, ReplicaPhase]:
    return {replica.name: replica.phase for replica in view(world.state, world.now).replicas}


def test_a_replica_is_told_with_its_load_and_capacity() -> None:
    world = World(spec("a", "m", "n"))
    world.place(arrived("t"))
    world.tell(ReplicaProbed(replica=A, healthy=True, load=Load(running=1, waiting=2), engine=EngineKind.SGLANG))
    (replica,) = view(world.state, world.now).replicas
    assert (replica.name, replica.models, replica.in_flight, replica.capacity) == ("a", ("m", "n"), 1, 1)
    assert (replica.engine, replica.load, replica.placed) == (EngineKind.SGLANG, Load(running=1, waiting=2), 1)
    assert replica.why == ""
    world.tell(probed("a", healthy=False, cause="gone"))
    assert view(world.state, world.now).replicas[0].why == "gone"


def test_a_replica_that_came_back_is_told_with_its_window() -> None:
    world = World(spec("a"))
    assert view(world.state, world.now).replicas[0].window is None
    world.tell_all([probed("a", healthy=False), probed("a"), *(arrived(f"t{number}") for number in range(4))])
    (replica,) = view(world.state, world.now).replicas
    assert (replica.window, replica.capacity, replica.phase) == (Window(4), 4, ReplicaPhase.FULL)


def test_a_declared_engine_is_not_overruled_by_what_its_report_looks_like() -> None:
    world = World(spec("a", engine=EngineKind.VLLM))
    world.tell(ReplicaProbed(replica=A, healthy=True, engine=EngineKind.SGLANG))
    assert view(world.state, world.now).replicas[0].engine is EngineKind.VLLM


def test_a_replica_goes_through_its_phases() -> None:
    world = World(spec("a"), healthy=False)
    seen = [phases(world)["a"]]
    for event in (
        probed("a"),
        arrived("t"),
        probed("a", running=1, waiting=1),
        probed("a", healthy=False),
        ReplicaRemoved(replica=A),
    ):
        world.tell(event)
        seen.append(phases(world)["a"])
    assert seen == [
        ReplicaPhase.STARTING,
        ReplicaPhase.READY,
        ReplicaPhase.READY,
        ReplicaPhase.FULL,
        ReplicaPhase.DOWN,
        ReplicaPhase.LEAVING,
    ]
    world.tell(finished("t"))
    assert phases(world) == {}


def test_replicas_stand_in_order_of_declaration() -> None:
    world = World(spec("z"), spec("b"), spec("k"))
    assert list(phases(world)) == ["z", "b", "k"]


def test_held_turns_are_told_by_caller_and_class_in_the_order_in_which_they_would_go() -> None:
    world = World(spec("a"))
    world.place(arrived("x", caller="greedy"))
    world.tell(probed("a", running=1, waiting=1))
    world.hold(arrived("g1", caller="greedy"))
    world.later(5)
    world.hold(arrived("m1", caller="modest"))
    world.hold(arrived("g2", caller="greedy"))
    world.hold(arrived("b1", caller="modest", batch=True))
    world.later(2)
    room = WaitingForRoom(replica=A, in_flight=1, capacity=1)
    assert view(world.state, world.now).held == (
        HeldView(service_class=INTERACTIVE, caller=CallerId("modest"), count=1, oldest_s=2.0, reason=room),
        HeldView(
            service_class=INTERACTIVE,
            caller=CallerId("greedy"),
            count=2,
            oldest_s=7.0,
            reason=BehindCaller(caller=CallerId("modest")),
        ),
        HeldView(service_class=BATCH, caller=CallerId("modest"), count=1, oldest_s=2.0, reason=room),
    )


def test_a_caller_held_in_several_pools_is_one_row() -> None:
    world = World(spec("a"), spec("b", "n"))
    world.tell_all([arrived("t1", "r"), finished("t1", tools=1), *crowded("a")])
    world.tell_all(crowded("b"))
    world.hold(arrived("t2", "r"))
    world.hold(arrived("n1", model="n"))
    (row,) = view(world.state, world.now).held
    assert row.count == 2
    assert row.reason == WaitingForHome(replica=A, in_flight=1, capacity=1)


def test_beyond_so_many_callers_of_a_class_all_others_share_a_row() -> None:
    world = World(spec("a"))
    world.tell_all(crowded("a"))
    for number in range(HELD_ROWS_MAX + 3):
        world.hold(arrived(f"t{number}", caller=f"c{number}"))
        world.later(1)
    world.hold(arrived("again", caller=f"c{HELD_ROWS_MAX}"))
    world.hold(arrived("b", caller="other", batch=True))
    *named, others, batch = view(world.state, world.now).held
    assert [row.caller for row in named] == [f"c{number}" for number in range(HELD_ROWS_MAX)]
    assert (others.service_class, others.caller, others.count, others.oldest_s) == (INTERACTIVE, OTHER_CALLERS, 4, 3.0)
    assert others.reason == BehindCaller(caller=CallerId("c0"))
    assert (batch.service_class, batch.caller, batch.count) == (BATCH, "other", 1)


def test_runs_are_counted_by_phase_and_class() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("t1", "r1"), arrived("t2", "r2"), finished("t2", tools=1), arrived("t3", "r3", batch=True)])
    world.tell_all([finished("t3"), arrived("t4", "r4")])
    assert view(world.state, world.now).runs == (
        RunsView(phase=RunPhase.GENERATING, service_class=INTERACTIVE, count=2),
        RunsView(phase=RunPhase.PAUSED, service_class=INTERACTIVE, count=1),
        RunsView(phase=RunPhase.IDLE, service_class=BATCH, count=1),
    )


def test_a_tool_is_told_with_who_is_out_and_when_they_are_expected() -> None:
    world = World(spec("a"))
    for number in range(20):
        world.tell_all([arrived(f"t{number}", f"r{number}"), finished(f"t{number}", tools=("wiki__search",))])
    (tool,) = view(world.state, world.now).tools
    assert (tool.server, tool.tool, tool.returned, tool.running) == ("wiki", "search", 0, 20)
    assert tool.p50_s == pytest.approx(2.0, abs=0.1)
    world.later(30)
    for number in range(19):
        world.tell(arrived(f"u{number}", f"r{number}"))
    (tool,) = view(world.state, world.now).tools
    assert (tool.returned, tool.running) == (19, 1)
    assert 22 < tool.p50_s < tool.p90_s < 46
    history = world.state.tools.histories[ToolName("wiki__search")]
    assert tool.expected_return_s == return_law(history, [(30.0, 1)]).expected_return(30.0)
    world.tell(arrived("u19", "r19"))
    (tool,) = view(world.state, world.now).tools
    assert tool.expected_return_s == return_law(world.state.tools.histories[ToolName("wiki__search")]).expected_return(
        0.0
    )


def test_the_busiest_tools_are_shown_first_and_no_more_than_are_read() -> None:
    world = World(spec("a"))

    def go_out(run: str, tool: str) -> None:
        world.tell_all([arrived(f"t-{run}", run), finished(f"t-{run}", tools=(tool,))])

    for number in range(TOOLS_SHOWN + 5):
        go_out(f"r{number}", f"once{number:02}")
        world.tell(arrived(f"back{number}", f"r{number}"))
    for number in range(3):
        go_out(f"s{number}", "often")
        world.tell(arrived(f"back-s{number}", f"s{number}"))
    go_out("p", "out")
    go_out("q1", "crowded")
    go_out("q2", "crowded")
    rows = [(tool.tool, tool.running, tool.returned) for tool in view(world.state, world.now).tools]
    assert rows[:4] == [("crowded", 2, 0), ("out", 1, 0), ("often", 0, 3), ("once00", 0, 1)]
    assert len(rows) == TOOLS_SHOWN


def test_held_turns_are_counted_by_class_zero_included() -> None:
    world = World(spec("a"), healthy=False)
    assert held_by_class(world.state) == {INTERACTIVE: 0, BATCH: 0}
    world.hold(arrived("t1"))
    world.hold(arrived("t2", caller="other"))
    assert held_by_class(world.state) == {INTERACTIVE: 2, BATCH: 0}


def test_every_reason_is_a_sentence() -> None:
    assert explain(NoHealthyReplica(model=ModelName("m"))) == "no healthy replica serves m yet"
    assert explain(BehindCaller(caller=CallerId("c"))) == "behind caller c in fair order"
    assert explain(WaitingForRoom(replica=A, in_flight=3, capacity=2)) == "waiting for room: a runs 3 of 2"
    home = explain(WaitingForHome(replica=A, in_flight=1, capacity=1))
    returning = explain(AwaitingReturn(replica=A))
    assert returning == "an interactive run came back to a, and batch waits for its first token"
    window = explain(WindowFull(replica=A, turns=1, refused=True))
    assert window == "a refused a turn a moment ago and takes 1 turn until it has answered some"
    assert home == "waiting for its home a, where its prefix is cached: 1 of 1 in flight"
