from dataclasses import replace

import pytest

from core.runs.run_builders import NOW, after, intended, recorded, returned, said, sent, spawned, the_turn, used
from luftpause.core.model.ids import ActiveMs, RunId
from luftpause.core.runs.actions import CheckCall, TakeTurn
from luftpause.core.runs.advance import LANDING_TEXT
from luftpause.core.runs.budgets import next_deadline, overdue
from luftpause.core.runs.events import (
    Event,
    Exceeded,
    LandingBegun,
    Limits,
    RunCancelled,
    RunFinished,
    RunRecovered,
    RunSpawned,
)
from luftpause.core.runs.go_on import overdue_endings
from luftpause.core.runs.invariants import check
from luftpause.core.runs.messages import UserMessage
from luftpause.core.runs.view import view

R, KID = RunId("r"), RunId("kid")


def budgeted(
    run: str = "r",
    *,
    parent: str | None = None,
    tokens: int | None = None,
    calls: int | None = None,
    seconds: int | None = None,
) -> RunSpawned:
    return replace(spawned(run, parent=parent), budget=Limits(tokens=tokens, tool_calls=calls, seconds=seconds))


def end(run: str, which: str, used_up: int, limit: int, of: str = "r") -> RunCancelled:
    exceeded = Exceeded(run=RunId(of), which=which, used=used_up, limit=limit)
    return RunCancelled(run=RunId(run), why=f"budget exceeded: {which} {used_up}/{limit}", exceeded=exceeded)


@pytest.mark.parametrize(
    ("spawn", "events", "ending"),
    [
        (budgeted(tokens=100), (used(101, "c1"),), end("r", "tokens", 101, 100)),
        (budgeted(tokens=100), (used(101, text="done"),), end("r", "tokens", 101, 100)),
        (budgeted(calls=1), (said("", "c1", "c2"),), end("r", "toolCalls", 2, 1)),
    ],
)
def test_past_a_limit_a_run_is_cancelled_and_told_by_how_much(
    spawn: RunSpawned, events: tuple[Event, ...], ending: RunCancelled
) -> None:
    decision = after(spawn, *events)
    assert recorded(decision) == (ending,)
    assert len(decision.actions) == 1, "none of its calls is even looked at"
    over = after(ending, state=decision.state).state
    shown = view(over, R, NOW)
    assert (shown.error, shown.budget and shown.budget.exceeded) == (
        ending.why,
        ending.exceeded and ending.exceeded.which,
    )


def test_what_is_used_up_exactly_is_not_exceeded_while_nothing_more_is_needed() -> None:
    decision = after(budgeted(tokens=100), used(100, text="done"))
    assert recorded(decision) == (RunFinished(run=R, result="done"),)
    shown = view(after(*recorded(decision), state=decision.state).state, R, NOW)
    assert shown.budget is not None
    assert (shown.budget.used.tokens, shown.budget.exceeded) == (100, None)


def test_no_token_left_is_no_turn_at_all_and_never_one_without_a_limit() -> None:
    decision = after(budgeted(tokens=100), used(100, "c1"), intended("c1"), returned("c1"))
    assert recorded(decision) == (end("r", "tokens", 100, 100),)
    assert len(decision.actions) == 1


def test_work_below_counts_and_the_whole_subtree_ends_with_the_same_words() -> None:
    family = (budgeted(tokens=100), spawned("kid", parent="r"), spawned("other", parent="r"), spawned("stranger"))
    decision = after(*family, used(60, "c1", run="kid"), used(50, "c2", run="other"))
    assert recorded(decision) == (
        end("r", "tokens", 110, 100),
        end("kid", "tokens", 110, 100),
        end("other", "tokens", 110, 100),
    )
    top = after(end("r", "tokens", 110, 100), state=decision.state)
    assert recorded(top) == (end("kid", "tokens", 110, 100), end("other", "tokens", 110, 100))


def test_a_budget_of_a_run_that_is_over_still_binds_all_below_it() -> None:
    family = (budgeted(tokens=100), spawned("kid", parent="r"), RunFinished(run=R, result="early"))
    decision = after(*family, used(101, "c1", run="kid"))
    assert recorded(decision) == (end("kid", "tokens", 101, 100),)
    late = after(spawned("late", parent="r"), state=decision.state)
    assert [event.run for event in recorded(late)] == ["kid", "late"]
    shown = view(decision.state, R, NOW)
    assert shown.budget is not None
    assert shown.budget.exceeded == "tokens"


def test_the_nearest_budget_that_is_spent_ends_its_subtree_and_no_more() -> None:
    family = (budgeted(tokens=1000), budgeted("kid", parent="r", tokens=100), spawned("grandkid", parent="kid"))
    decision = after(*family, used(101, "c1", run="grandkid"))
    assert [event.run for event in recorded(decision)] == ["kid", "grandkid"]


def test_a_reply_never_may_be_longer_than_what_is_left_above() -> None:
    family = (budgeted(tokens=300), budgeted("kid", parent="r", tokens=1000))
    assert the_turn(*family).max_tokens == 256
    state = after(*family, used(120, "c1", run="kid"), intended("c1", run="kid")).state
    assert the_turn(returned("c1", run="kid"), state=state).max_tokens == 180
    unlimited = replace(budgeted(tokens=300), max_tokens=0)
    assert the_turn(unlimited).max_tokens == 300
    assert the_turn(replace(spawned(), max_tokens=0)).max_tokens == 0


def test_parallel_children_overshoot_by_no_more_than_their_turns_in_flight() -> None:
    kids = [f"kid{number}" for number in range(5)]
    state = after(budgeted(tokens=100), *(spawned(kid, parent="r") for kid in kids)).state
    taken = 0
    for kid in kids:
        decision = after(used(60, f"c-{kid}", run=kid), state=state)
        state = decision.state
        taken += sum(isinstance(action, TakeTurn | CheckCall) for action in decision.actions)
    assert taken == 1, "only the first one's call went on: the second passed the limit"
    for kid in kids[1:]:
        assert (
            after(intended(f"c-{kid}", run=kid), state=state).actions
            == after(RunRecovered(run=RunId(kid)), state=state).actions
        ), "and whatever happens to any of them, it ends"


def test_near_its_end_a_budget_gives_one_last_turn_without_tools() -> None:
    decision = after(budgeted(tokens=100), used(80, "c1"), intended("c1"), returned("c1"))
    assert decision.actions == after(RunRecovered(run=R), state=decision.state).actions, "also after a restart"
    assert recorded(decision) == (LandingBegun(run=R),)
    turn = the_turn(LandingBegun(run=R), state=decision.state)
    assert (turn.tools, turn.max_tokens) == ((), 20)
    assert turn.messages[-1] == UserMessage(text=LANDING_TEXT)
    landing = after(LandingBegun(run=R), state=decision.state).state
    assert after(LandingBegun(run=R), state=landing).state is landing, "it is offered once"
    assert the_turn(RunRecovered(run=R), state=landing) == turn


def test_the_answer_of_the_last_turn_is_kept_though_it_passed_the_limit() -> None:
    state = after(
        budgeted(tokens=100), spawned("kid", parent="r"), used(80, "c1"), intended("c1"), returned("c1")
    ).state
    decision = after(LandingBegun(run=R), used(90, "c2", text="so far"), state=state)
    assert recorded(decision) == (end("kid", "tokens", 170, 100), RunFinished(run=R, result="so far"))
    check(decision.state)


def test_a_landed_answer_below_a_budget_outlives_its_owners_end() -> None:
    state = after(budgeted(tokens=100), spawned("kid", parent="r"), used(80, "c1", run="kid")).state
    state = after(intended("c1", run="kid"), returned("c1", run="kid"), state=state).state
    landed = after(LandingBegun(run=KID), used(30, text="so far", run="kid"), state=state)
    assert recorded(landed) == (end("r", "tokens", 110, 100), RunFinished(run=KID, result="so far"))
    owner_over = after(end("r", "tokens", 110, 100), state=landed.state)
    assert recorded(owner_over) == ()
    again = after(RunRecovered(run=KID), state=owner_over.state)
    assert recorded(again) == (RunFinished(run=KID, result="so far"),)


def test_the_last_tool_call_of_a_budget_is_followed_by_the_last_turn() -> None:
    decision = after(budgeted(calls=1), said("", "c1"), intended("c1"), returned("c1"))
    assert recorded(decision) == (LandingBegun(run=R),)
    toolless = after(budgeted(calls=1), said("", "c1"), replace(spawned("kid", parent="r"), tools=()))
    assert isinstance(toolless.actions[0], TakeTurn), "what has no tools needs no warning"


def test_time_is_counted_from_the_spawn_and_trips_an_idle_subtree() -> None:
    state = after(budgeted(seconds=60), spawned("kid", parent="r"), said("", "c1"), intended("c1")).state
    assert next_deadline(state, R, ActiveMs(0)) == 60_000
    assert overdue(state, R, ActiveMs(59_999)) == ()
    assert overdue_endings(state, R, ActiveMs(60_000)) == (end("r", "seconds", 60, 60), end("kid", "seconds", 60, 60))
    assert next_deadline(state, R, ActiveMs(60_000)) is None
    assert recorded(after(returned("c1"), state=state, now=61_000))[0] == end("r", "seconds", 61, 60)


def test_time_lands_a_run_too() -> None:
    state = after(budgeted(seconds=10), said("", "c1"), intended("c1")).state
    assert isinstance(after(returned("c1"), state=state, now=7_999).actions[0], TakeTurn)
    assert recorded(after(returned("c1"), state=state, now=8_000)) == (LandingBegun(run=R),)


def test_time_stands_still_for_what_is_over() -> None:
    state = after(RunFinished(run=R, result=""), state=after(budgeted(seconds=60)).state, now=5_000).state
    shown = view(state, R, ActiveMs(999_000))
    assert shown.budget is not None
    assert (shown.budget.used.seconds, shown.budget.exceeded) == (5, None)
    assert next_deadline(state, R, ActiveMs(6_000)) is None
    assert overdue(state, R, ActiveMs(999_000)) == ()
    state = after(sent(), state=state, now=6_000).state
    assert next_deadline(state, R, ActiveMs(6_000)) == 60_000


def test_the_first_of_several_deadlines_counts() -> None:
    state = after(
        budgeted(seconds=60), budgeted("kid", parent="r", seconds=20), budgeted("slow", parent="r", seconds=90)
    ).state
    assert next_deadline(state, R, ActiveMs(0)) == 20_000
    assert next_deadline(state, R, ActiveMs(20_000)) == 60_000
    assert next_deadline(state, RunId("elsewhere"), ActiveMs(0)) is None
