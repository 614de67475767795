"""Simulated agents."""

import statistics

import msgspec
import pytest

from luftpause.testkit.sim.clients import Fate, SimRun, SimTurn, TurnPhase, draw_fate, draw_legs, request_of
from luftpause.testkit.sim.scenario import Faults, ToolTimes
from testkit.sim.worlds import group


def test_a_run_contains_the_same_whenever_it_begins() -> None:
    legs = draw_legs(group(), 1, 7)
    assert legs == draw_legs(group(), 1, 7)
    assert legs != draw_legs(group(), 1, 8)
    assert legs != draw_legs(group(), 2, 7)
    assert 2 <= len(legs) <= 4
    assert [leg.tool_s is None for leg in legs] == [False] * (len(legs) - 1) + [True]


def test_tools_are_drawn_by_their_shares() -> None:
    tools = (ToolTimes(median_s=1.0, share=3.0), ToolTimes(median_s=50.0, share=1.0))
    mixed = msgspec.structs.replace(group(), tools=tools)
    times = [leg.tool_s for number in range(500) for leg in draw_legs(mixed, 1, number) if leg.tool_s is not None]
    assert set(map(round, times)) == {1, 50}
    assert statistics.fmean(time > 10 for time in times) == pytest.approx(0.25, abs=0.04)


def test_each_prompt_holds_the_whole_conversation() -> None:
    run = SimRun(group(system_tokens=64), 1, 0, 0.0)
    first = SimTurn(run, 1, 1, 0.0)
    assert first.prompt_tokens == 64 + run.legs[0].new_tokens
    run.answered(first.prompt_tokens)
    second = SimTurn(run, 2, 1, 1.0)
    assert second.prompt_tokens == first.prompt_tokens + run.legs[0].reply_tokens + run.legs[1].new_tokens
    asked = request_of(second, 1, Fate.ANSWERED)
    assert asked.prompt == (("system batch", 64), ("batch-0", second.prompt_tokens - 64))
    assert (asked.prompt_tokens, asked.priority) == (second.prompt_tokens, 1)


def test_runs_belong_to_the_callers_in_turn() -> None:
    assert [SimRun(group(callers=2), 1, number, 0.0).caller for number in range(3)] == ["batch-0", "batch-1", "batch-0"]


def test_a_turn_goes_to_an_engine_once_and_ends_once() -> None:
    turn = SimTurn(SimRun(group(), 1, 0, 0.0), 1, 1, 0.0)
    turn.step(TurnPhase.SENT)
    with pytest.raises(AssertionError, match=r"turn sim\.1 of run batch-0 was sent and is sent again"):
        turn.step(TurnPhase.SENT)
    turn.step(TurnPhase.ENDED)
    with pytest.raises(AssertionError, match="was ended and is ended again"):
        turn.step(TurnPhase.ENDED)


def test_faults_strike_as_often_as_they_should_and_the_same_attempt_alike() -> None:
    faults = Faults(refused=0.3, cut=0.2)
    turns = [SimTurn(SimRun(group(), 1, number, 0.0), 1, 1, 0.0) for number in range(1000)]
    fates = [draw_fate(turn, 1, faults) for turn in turns]
    assert fates == [draw_fate(turn, 1, faults) for turn in turns]
    assert fates.count(Fate.REFUSED) == pytest.approx(300, abs=50)
    assert fates.count(Fate.CUT) == pytest.approx(200, abs=50)
    assert {draw_fate(turn, 1, Faults()) for turn in turns} == {Fate.ANSWERED}
    dies_after = request_of(turns[0], 1, Fate.CUT).dies_after
    assert dies_after is not None
    assert 1 <= dies_after <= turns[0].run.leg.reply_tokens
