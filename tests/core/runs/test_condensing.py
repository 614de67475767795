from dataclasses import replace

import pytest

from core.runs.run_builders import NOW, after, asked, decided, history, intended, returned, said, sent, spawned
from luftpause.core.model.ids import PrincipalId, RunId
from luftpause.core.runs.advance import without_conversation
from luftpause.core.runs.condensing import TASK_SHOWN_MAX, Outcome, brief, condense, forget, restore
from luftpause.core.runs.events import (
    ApprovalScope,
    Ending,
    Event,
    Exceeded,
    Limits,
    RunCancelled,
    RunFailed,
    RunFinished,
)
from luftpause.core.runs.invariants import check
from luftpause.core.runs.replay import History, replay
from luftpause.core.runs.state import State

R, KID = RunId("r"), RunId("kid")
SPAWN = replace(
    spawned(),
    task="x" * 1000,
    system="be brief",
    budget=Limits(tokens=900, seconds=60),
    idempotency_key="mine",
    arguments_digest="d",
    output_schema={"type": "string"},
)
FINISHED = RunFinished(run=R, result="42", structured={"n": 42})
LIFE: tuple[Event, ...] = (
    SPAWN,
    said("", "c1", "c2"),
    intended("c1"),
    returned("c1"),
    asked("c2"),
    decided("c2", scope=ApprovalScope.TREE),
    returned("c2", failed=True),
    replace(said("42"), origin_run=RunId("boss")),
)


def over(*events: Event) -> State:
    state = after(*events).state
    for run in list(state.runs.values()):
        state = without_conversation(state, run)
    return state


@pytest.mark.parametrize(
    ("ending", "outcome", "text"),
    [
        (FINISHED, Outcome.FINISHED, "42"),
        (RunFailed(run=R, error="gone"), Outcome.FAILED, "gone"),
        (
            RunCancelled(run=R, why="spent", exceeded=Exceeded(run=R, which="tokens", used=9, limit=8)),
            Outcome.CANCELLED,
            "spent",
        ),
    ],
)
def test_what_is_kept_of_a_run_gives_the_state_that_was_lived(ending: Ending, outcome: Outcome, text: str) -> None:
    lived = over(*LIFE, ending)
    kept = condense(lived, R)
    assert kept is not None
    assert (kept.outcome, kept.text, kept.tree_grants) == (outcome, text, frozenset({"s__look"}))
    assert restore(State(), kept) == lived
    assert restore(lived, kept) is lived


def test_a_run_that_lives_is_kept_whole() -> None:
    assert condense(after(*LIFE).state, R) is None
    assert condense(after(*LIFE, FINISHED, sent()).state, R) is None


def test_children_count_for_their_parents_whether_those_are_over_or_not() -> None:
    kid = (spawned("kid", parent="r"), said("done", run="kid"), RunFinished(run=KID, result="done"))
    for parent in (LIFE, (*LIFE, FINISHED)):
        lived = over(*parent, *kid)
        kept = condense(lived, KID)
        assert kept is not None
        above = condense(lived, R)
        first = history("r", *parent) if above is None else History(run=R, condensed=above)
        state = replay([History(run=KID, condensed=kept), first])
        assert state == lived
        check(state)


def test_a_short_spawn_has_what_views_and_repeated_spawns_want() -> None:
    short = brief(SPAWN)
    assert (short.tools, short.system, short.output_schema) == ((), None, None)
    assert short.task == "x" * TASK_SHOWN_MAX
    assert short == replace(SPAWN, task=short.task, system=None, tools=(), output_schema=None)


def test_what_is_forgotten_leaves_nothing_behind() -> None:
    other = replace(spawned("other"), idempotency_key="mine", principal=PrincipalId("q"))
    left = over(other)
    state = forget(over(other, *LIFE, FINISHED, spawned("kid", parent="r"), RunFinished(run=KID, result="")), [R, KID])
    assert state == left
    assert forget(state, [R]) == left
    check(state)


def test_a_damaged_run_that_was_over_stays_as_it_ended() -> None:
    kept = condense(over(*LIFE, FINISHED), R)
    state = replay([History(run=R, condensed=kept, damage="its archive is not there")])
    assert state == over(*LIFE, FINISHED)
    assert state.runs[R].ended == NOW
