"""Simulated agents."""

from dataclasses import replace

import pytest

from luftpause.testkit.sim.clients import Fate, SimRun, SimTurn, TurnPhase, draw_fate, request_of
from luftpause.testkit.sim.plans import Leg, draw_plan
from luftpause.testkit.sim.scenario import Faults
from testkit.sim.worlds import group


def test_each_prompt_holds_the_whole_conversation() -> None:
    run = SimRun(draw_plan(group(system_tokens=64), 1, 0), 0.0)
    first = SimTurn(run, 1, 1, 0.0)
    assert first.prompt_tokens == 64 + run.plan.legs[0].new_tokens
    run.answered(first, 1.0)
    second = SimTurn(run, 2, 1, 1.0)
    assert second.prompt_tokens == first.prompt_tokens + run.plan.legs[0].reply_tokens + run.plan.legs[1].new_tokens
    second.priority = 3
    asked = request_of(second, 1, Fate.ANSWERED)
    assert asked.prompt == (("system batch", 64), ("batch-0", second.prompt_tokens - 64))
    assert (asked.prompt_tokens, asked.priority) == (second.prompt_tokens, 3)


def test_a_rewritten_prompt_shares_nothing_with_the_one_before_but_what_all_share() -> None:
    legs = (Leg(100, 10, 1.0, paused=False), Leg(-20, 5, 1.0, paused=False), Leg(40, 5, None, False, rewritten=True))
    plan = replace(draw_plan(group(system_tokens=64), 1, 0), legs=legs)
    run = SimRun(plan, 0.0)
    asked, kept = [], []
    for key in range(3):
        turn = SimTurn(run, key, 1, 2.0)
        asked.append(request_of(turn, 1, Fate.ANSWERED).prompt)
        kept.append(run.prompt_tokens_before)
        run.answered(turn, 5.0)
    shared = ("system batch", 64)
    assert asked[:2] == [(shared, ("batch-0", 100)), (shared, ("batch-0", 90))]
    assert asked[2] == (shared, ("batch-0 rewritten 1", 40))
    assert kept == [0, 164, 0]
    assert run.turn_s == [3.0, 3.0, 3.0]


def test_a_turn_goes_to_an_engine_once_and_ends_once() -> None:
    turn = SimTurn(SimRun(draw_plan(group(), 1, 0), 0.0), 1, 1, 0.0)
    turn.step(TurnPhase.SENT)
    with pytest.raises(AssertionError, match=r"turn sim\.1 of run batch-0 was sent and is sent again"):
        turn.step(TurnPhase.SENT)
    turn.step(TurnPhase.ENDED)
    with pytest.raises(AssertionError, match="was ended and is ended again"):
        turn.step(TurnPhase.ENDED)


def test_faults_strike_as_often_as_they_should_and_the_same_attempt_alike() -> None:
    faults = Faults(refused=0.3, cut=0.2)
    turns = [SimTurn(SimRun(draw_plan(group(), 1, number), 0.0), 1, 1, 0.0) for number in range(1000)]
    fates = [draw_fate(turn, 1, faults) for turn in turns]
    assert fates == [draw_fate(turn, 1, faults) for turn in turns]
    assert fates.count(Fate.REFUSED) == pytest.approx(300, abs=50)
    assert fates.count(Fate.CUT) == pytest.approx(200, abs=50)
    assert {draw_fate(turn, 1, Faults()) for turn in turns} == {Fate.ANSWERED}
    dies_after = request_of(turns[0], 1, Fate.CUT).dies_after
    assert dies_after is not None
    assert 1 <= dies_after <= turns[0].run.leg.reply_tokens
