from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.runs.run_builders import NOW, after, dateless, spawned
from luftpause.core.model.ids import RunId, ToolCallId
from luftpause.core.runs.actions import Action, CallTool, CheckCall, EndRun, TakeTurn
from luftpause.core.runs.advance import decide
from luftpause.core.runs.events import (
    Event,
    RunCancelled,
    RunFailed,
    RunRecovered,
    ToolCallIntended,
    ToolCallRejected,
    ToolReturned,
    TurnTaken,
)
from luftpause.core.runs.invariants import check
from luftpause.core.runs.messages import AssistantMessage, ToolCall
from luftpause.core.runs.replay import History, replay, unfinished
from luftpause.core.runs.state import State, Totals

RUNS = ("a", "b", "c", "d")


class World:
    """A shell of the runs core that does what is ordered in any order the test draws, and can lose everything."""

    def __init__(self) -> None:
        self.state = State()
        self.journal: dict[RunId, list[Event]] = {}
        self.open: list[Action] = []
        self.unsafe_calls: list[str] = []

    def take(self, event: Event) -> None:
        self.journal.setdefault(event.run, []).append(event)
        decision = decide(self.state, event, NOW)
        self.state = decision.state
        for action in decision.actions:
            if isinstance(action, CallTool) and not self.is_repeatable(action):
                self.unsafe_calls.append(action.key)
            self.open.append(action)
        check(self.state)
        assert dateless(self.replayed()) == dateless(self.state)

    def is_repeatable(self, action: CallTool) -> bool:
        return any(
            isinstance(event, ToolCallIntended) and event.call == action.call and event.repeatable
            for event in self.journal[action.run]
        )

    def replayed(self) -> State:
        return replay((History(run=run, events=tuple(events)) for run, events in self.journal.items()), NOW)

    def restart(self) -> None:
        self.open = []
        self.state = self.replayed()
        for run in unfinished(self.state):
            self.take(RunRecovered(run=run))

    def perform(self, action: Action, choice: int) -> None:
        match action:
            case TakeTurn():
                self.take(turn(action, choice, self.state.runs[action.run].own.turns))
            case CheckCall() if choice == 0:
                self.take(ToolCallRejected(run=action.run, call=action.call, text="no"))
            case CheckCall():
                self.take(ToolCallIntended(run=action.run, call=action.call, repeatable=choice % 2 == 0))
            case CallTool():
                self.take(ToolReturned(run=action.run, call=action.call, text="x", failed=choice == 0, took_ms=7))
            case EndRun():
                self.take(action.ending)
            case _:
                return


def turn(action: TakeTurn, choice: int, number: int) -> Event:
    if choice == 5:
        return RunFailed(run=action.run, error="engine gone")
    calls = tuple(
        ToolCall(call=ToolCallId(f"{number}.{place}"), tool="look", arguments="{}") for place in range(choice % 4)
    )
    return TurnTaken(run=action.run, message=AssistantMessage(text="t", tool_calls=calls), took_ms=11)


step = st.tuples(st.sampled_from(["spawn", "perform", "perform", "perform", "cancel", "restart"]), st.integers(0, 5))


@given(st.lists(step, max_size=40), st.integers(0, 3))
@settings(max_examples=150, deadline=None)
def test_replay_equals_life_at_every_step_and_every_run_ends(steps: list[tuple[str, int]], budget: int) -> None:
    world = World()
    for what, choice in steps:
        known = list(world.state.runs)
        if what == "spawn" and choice < len(RUNS):
            parent = sorted(known)[choice % len(known)] if known and choice else None
            world.take(spawned(RUNS[choice], parent=None if parent == RUNS[choice] else parent, budget=budget))
        elif what == "perform" and world.open:
            world.perform(world.open.pop(choice % len(world.open)), choice)
        elif what == "cancel" and known:
            world.take(RunCancelled(run=sorted(known)[choice % len(known)], why="drawn"))
        elif what == "restart":
            world.restart()
    for _ in range(1000):
        if not world.open:
            break
        world.perform(world.open.pop(0), 1)
    assert all(run.is_over for run in world.state.runs.values()), "a run hangs"
    assert len(set(world.unsafe_calls)) == len(world.unsafe_calls), "an unsafe call was made twice"


def test_wrong_states_are_found() -> None:
    state = after(spawned()).state
    run = state.runs[RunId("r")]
    for broken in (
        replace(state, running=2),
        replace(state, runs=state.runs.set(RunId("r"), replace(run, messages=()))),
        replace(state, runs=state.runs.set(RunId("r"), replace(run, own=Totals(turns=1)))),
        replace(state, runs=state.runs.set(RunId("r"), replace(run, tree=RunId("elsewhere")))),
    ):
        with pytest.raises(AssertionError):
            check(broken)
