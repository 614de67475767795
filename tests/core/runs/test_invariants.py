import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.runs.run_builders import NOW, after, spawned
from luftpause.core.model.ids import ActiveMs, ModelName, RunId, ToolCallId
from luftpause.core.model.turns import Usage
from luftpause.core.runs.actions import Action, CallTool, CheckAnswer, CheckCall, Record, TakeTurn
from luftpause.core.runs.advance import decide, is_stale, without_conversation
from luftpause.core.runs.approvals import pending_calls
from luftpause.core.runs.condensing import condense
from luftpause.core.runs.events import (
    AnswerRejected,
    ApprovalAsked,
    ApprovalDecided,
    ApprovalScope,
    Event,
    Limits,
    MessageSent,
    RunCancelled,
    RunFinished,
    RunRecovered,
    RunSpawned,
    ToolCallIntended,
    ToolCallRejected,
    ToolReturned,
    TurnFailed,
    TurnTaken,
)
from luftpause.core.runs.go_on import overdue_endings
from luftpause.core.runs.invariants import check
from luftpause.core.runs.messages import AssistantMessage, ToolCall
from luftpause.core.runs.replay import Entry, History, clocks, conversation, recalled, replay, unfinished
from luftpause.core.runs.state import Finished, State, Totals
from luftpause.core.runs.tree import tree_of

R = RunId("r")
RUNS = ("a", "b", "c", "d", "e")
BUDGETS = (Limits(tokens=20), None, Limits(tool_calls=2), Limits(seconds=3), Limits(tokens=45, seconds=9))
SCOPES = tuple(ApprovalScope)


class World:
    """A shell of the runs core that does what is ordered in any order the test draws, and can lose everything."""

    def __init__(self) -> None:
        self.state = State()
        self.now: dict[RunId, int] = {}
        self.journal: dict[RunId, list[Entry]] = {}
        self.open: list[Action] = []
        self.unsafe_calls: list[str] = []
        self.calls: list[tuple[RunId, str]] = []

    def take(self, event: Event) -> None:
        known = self.state.runs.get(event.run)
        tree = event.run if known is None else known.tree
        if known is None and isinstance(event, RunSpawned):
            tree = tree_of(self.state, event)
        if known is not None and known.is_over:
            if not isinstance(event, MessageSent):
                return  # as the shell does: an end is the last record
            self.state = recalled(self.state, self.history(event.run))
        if is_stale(self.state, event):
            return
        entry = Entry(event, ActiveMs(self.now.setdefault(tree, 0)))
        self.journal.setdefault(event.run, []).append(entry)
        decision = decide(self.state, entry.event, entry.at)
        self.state = without_conversation(decision.state, decision.state.runs[event.run])
        for action in decision.actions:
            self.note(action)
            self.open.append(action)
        check(self.state)
        assert self.replayed() == self.state
        assert replay(self.remembered()) == self.state
        live = self.state.runs[event.run]
        if not live.is_over:
            assert conversation(self.history(event.run)) == live.messages

    def note(self, action: Action) -> None:
        if isinstance(action, CallTool):
            self.calls.append((action.run, action.call))
            if not self.is_repeatable(action):
                self.unsafe_calls.append(action.key)
            assert not self.was_declined(action), "a call was made that was declined"

    def is_repeatable(self, action: CallTool) -> bool:
        return any(
            isinstance(entry.event, ToolCallIntended | ApprovalAsked)
            and entry.event.call == action.call
            and entry.event.repeatable
            for entry in self.journal[action.run]
        )

    def was_declined(self, action: CallTool) -> bool:
        decisions = [
            entry.event.allow
            for entry in self.journal[action.run]
            if isinstance(entry.event, ApprovalDecided) and entry.event.call == action.call
        ]
        return bool(decisions) and not decisions[0]

    def history(self, run: RunId) -> History:
        return History(run=run, entries=tuple(self.journal[run]))

    def replayed(self) -> State:
        return replay(self.history(run) for run in self.journal)

    def remembered(self) -> list[History]:
        """What a journal has at hand: runs that are over in short."""
        found = []
        for run in self.journal:
            kept = condense(self.state, run)
            found.append(self.history(run) if kept is None else History(run=run, condensed=kept))
        return found

    def restart(self) -> None:
        self.open = []
        histories = self.remembered()
        self.state = replay(histories)
        assert by_name(replay(histories[::-1])) == by_name(self.state), "it hangs on whose history comes first"
        self.now = {tree: int(at) for tree, at in clocks(self.state, histories).items()}
        for run in unfinished(self.state):
            self.take(RunRecovered(run=run))

    def pass_time(self, ms: int) -> None:
        for tree in sorted(self.now):
            self.now[tree] += ms
            for ending in overdue_endings(self.state, tree, ActiveMs(self.now[tree])):
                self.take(ending)

    def perform(self, action: Action, choice: int) -> None:
        if self.state.runs[action.event.run if isinstance(action, Record) else action.run].is_over:
            return
        match action:
            case TakeTurn():
                self.take(turn(action, choice, self.state.runs[action.run].own.turns))
            case CheckCall() if choice == 0:
                self.take(ToolCallRejected(run=action.run, call=action.call, text="no"))
            case CheckCall() if choice in (1, 2):
                self.take(
                    ApprovalAsked(run=action.run, call=action.call, tool="s__look", reason="?", repeatable=choice == 2)
                )
            case CheckCall():
                self.take(ToolCallIntended(run=action.run, call=action.call, repeatable=choice % 2 == 0))
            case CallTool():
                self.take(ToolReturned(run=action.run, call=action.call, text="x", failed=choice == 0, took_ms=7))
            case CheckAnswer() if choice < 3:
                self.take(AnswerRejected(run=action.run, complaint="no"))
            case CheckAnswer():
                self.take(RunFinished(run=action.run, result=action.text, structured={"ok": True}))
            case Record():
                self.take(action.event)
            case _:
                return

    def answer(self, choice: int) -> bool:
        for run in self.state.runs.values():
            for call in pending_calls(self.state, run):
                name, scope = run.spawn.run, SCOPES[choice % 3]
                self.take(ApprovalDecided(run=name, call=call.asked.call, allow=choice % 4 != 0, by="me", scope=scope))
                return True
        return False


def by_name(state: State) -> State:
    """The state with children by name: their order is that of their histories, and nothing hangs on it."""
    for name, run in state.runs.items():
        state = replace(state, runs=state.runs.set(name, replace(run, children=tuple(sorted(run.children)))))
    return state


def turn(action: TakeTurn, choice: int, number: int) -> Event:
    if choice == 5:
        return TurnFailed(run=action.run, error="engine gone")
    calls = tuple(
        ToolCall(call=ToolCallId(f"{number}.{place}"), tool="look", arguments="{}") for place in range(choice % 4)
    )
    message = AssistantMessage(text=f"t{number}", tool_calls=calls)
    return TurnTaken(
        run=action.run, message=message, usage=Usage(prompt_tokens=7, completion_tokens=choice), took_ms=11
    )


def drawn_spawn(world: World, choice: int, allowance: int) -> RunSpawned:
    name, known = RUNS[choice % len(RUNS)], sorted(world.state.runs)
    parent = known[choice % len(known)] if known and choice % 3 else None
    return replace(
        spawned(name, parent=None if parent == name else parent, budget=allowance),
        budget=BUDGETS[choice % len(BUDGETS)],
        after=tuple(each for each in known[: choice % 2] if each != name),
        output_schema={"type": "object"} if choice % 2 else None,
        fallback_models=(ModelName("second"),) if choice % 3 == 1 else (),
    )


WHATS = ("spawn", "spawn", *["perform"] * 8, "cancel", "restart", "time", "send", *["answer"] * 3)


@pytest.mark.parametrize("seed", range(60))
def test_replay_equals_life_at_every_step_and_every_run_ends(seed: int) -> None:
    dice, world = random.Random(seed), World()
    allowance = dice.randrange(4)
    for _ in range(90):
        what, choice = dice.choice(WHATS), dice.randrange(12)
        known = sorted(world.state.runs)
        match what:
            case "spawn":
                world.take(drawn_spawn(world, dice.randrange(1000), allowance))
            case "perform" if world.open:
                world.perform(world.open.pop(choice % len(world.open)), dice.randrange(6))
            case "cancel" if known and choice == 0:
                world.take(RunCancelled(run=known[dice.randrange(len(known))], why="drawn"))
            case "send" if known:
                world.take(MessageSent(run=known[dice.randrange(len(known))], text=f"more {choice}"))
            case "time":
                world.pass_time(choice * 100)
            case "answer":
                world.answer(choice)
            case "restart" if choice < 6:
                world.restart()
            case _:
                pass
    settle(world)
    assert all(run.is_over for run in world.state.runs.values()), "a run hangs"
    assert len(set(world.unsafe_calls)) == len(world.unsafe_calls), "an unsafe call was made twice"


def settle(world: World) -> None:
    for _ in range(2000):
        if world.open:
            world.perform(world.open.pop(0), 3)
        elif not world.answer(1):
            return
    raise AssertionError("it goes on and on")


anything = st.one_of(
    st.builds(lambda n: spawned("r", budget=n), st.integers(0, 2)),
    st.builds(lambda c, n: TurnTaken(run=R, message=message_of(c, n)), st.integers(0, 2), st.integers(0, 2)),
    st.just(TurnFailed(run=RunId("r"), error="gone")),
    st.builds(lambda c: ToolCallIntended(run=R, call=c, repeatable=False), st.sampled_from(("0.0", "0.1", "1.0"))),
    st.builds(lambda c: ToolCallRejected(run=R, call=c, text="no"), st.sampled_from(("0.0", "0.1", "1.0"))),
    st.builds(
        lambda c: ApprovalAsked(run=R, call=c, tool="s__look", reason="?", repeatable=True),
        st.sampled_from(("0.0", "0.1", "1.0")),
    ),
    st.builds(
        lambda c, a, s: ApprovalDecided(run=R, call=c, allow=a, by="me", scope=s),
        st.sampled_from(("0.0", "0.1", "1.0")),
        st.booleans(),
        st.sampled_from(SCOPES),
    ),
    st.builds(lambda c: ToolReturned(run=R, call=c, text="x"), st.sampled_from(("0.0", "0.1", "1.0"))),
    st.just(AnswerRejected(run=RunId("r"), complaint="no")),
    st.just(MessageSent(run=RunId("r"), text="more")),
    st.just(RunRecovered(run=RunId("r"))),
    st.just(RunFinished(run=RunId("r"), result="42")),
    st.just(RunCancelled(run=RunId("r"), why="drawn")),
)


def message_of(calls: int, number: int) -> AssistantMessage:
    asked = (ToolCall(call=ToolCallId(f"{number}.{place}"), tool="look", arguments="{}") for place in range(calls))
    return AssistantMessage(text="t", tool_calls=tuple(asked))


@given(st.lists(st.tuples(anything, st.integers(0, 3000)), max_size=30))
@settings(max_examples=300, deadline=None)
def test_any_event_is_legal_in_any_state(steps: list[tuple[Event, int]]) -> None:
    state, now, entries = State(), 0, []
    for event, ms in steps:
        now += ms
        entries.append(Entry(event, ActiveMs(now)))
        state = decide(state, event, ActiveMs(now)).state
        check(state)
    if R in state.runs:
        state = without_conversation(state, state.runs[R])
    assert replay([History(run=R, entries=tuple(entries))]) == state


def test_wrong_states_are_found() -> None:
    state = after(replace(spawned(), budget=Limits(seconds=9), after=(RunId("x"),), idempotency_key="k")).state
    check(state)
    run = state.runs[R]
    for broken in (
        replace(state, running=2),
        replace(state, runs=state.runs.set(R, replace(run, messages=()))),
        replace(state, runs=state.runs.set(R, replace(run, own=Totals(turns=1)))),
        replace(state, runs=state.runs.set(R, replace(run, tree=RunId("elsewhere")))),
        replace(state, runs=state.runs.set(R, replace(run, open_runs=0))),
        replace(state, runs=state.runs.set(R, replace(run, calls_before=1))),
        replace(state, runs=state.runs.set(R, replace(run, phase=Finished(result="")))),
        replace(state, waiting=state.waiting.delete(RunId("x"))),
        replace(state, trees=state.trees.delete(R)),
        replace(state, keys=State().keys),
    ):
        with pytest.raises(AssertionError):
            check(broken)


def test_the_clock_of_a_new_tree_begins_at_nothing() -> None:
    assert after(spawned()).state.runs[R].began == NOW
