"""A trace as a load."""

import pytest

from luftpause.core.model.ids import ModelName
from luftpause.core.scheduling.events import Event
from luftpause.testkit.sim.plans import Leg
from luftpause.testkit.what_if.extract import extract
from luftpause.testkit.what_if.load import Load, NoLoadError, Planned, load_of
from testkit.what_if.recorded import declared, log_of, turn


def load(*turns: list[tuple[float, Event]], seed: int = 1) -> Load:
    told = [each for events in turns for each in events]
    return load_of(extract(log_of(*declared(), *told)), seed)


def test_a_leg_is_what_the_prompt_gained_the_reply_and_the_time_away() -> None:
    found = load(turn("1", "r", 1.0, 2.0, (100, 10, 0), tools=1), turn("2", "r", 7.0, 1.0, (150, 20, 100)))
    begun = found.beginnings[0]
    assert begun.at == 1.0
    assert begun.plan.legs == (Leg(100, 10, 4.0, paused=True), Leg(40, 20, None, paused=False))
    assert (begun.plan.reply_tokens_max, begun.plan.says_end, found.estimated) == (20, False, 0)
    assert found.tokens_max(ModelName("m")) == 170


def test_a_prompt_that_became_shorter_was_rewritten() -> None:
    found = load(turn("1", "r", 1.0, 2.0, (100, 10, 0)), turn("2", "r", 7.0, 1.0, (60, 5, 0)))
    assert found.beginnings[0].plan.legs[1] == Leg(60, 5, None, paused=False, rewritten=True)
    assert found.tokens_max(ModelName("m")) == 110


def test_a_reply_that_was_not_sent_back_leaves_a_smaller_gain() -> None:
    found = load(turn("1", "r", 1.0, 2.0, (100, 50, 0)), turn("2", "r", 7.0, 1.0, (120, 5, 0)))
    assert found.beginnings[0].plan.legs[1].new_tokens == -30


def test_tokens_that_nobody_reported_are_estimated_from_the_other_turns() -> None:
    known = [turn(f"{number}", f"r{number}", number, 1.0, (100, 10 + number, 0)) for number in range(5)]
    guessed = load(*known, turn("x", "x", 9.0, 1.0, None))
    leg = guessed.beginnings[-1].plan.legs[0]
    assert guessed.estimated == 1
    assert leg.new_tokens == 100
    assert 10 <= leg.reply_tokens <= 14
    drawn = {load(*known, turn("x", "x", 9.0, 1.0, None), seed=seed).beginnings[-1].plan for seed in range(20)}
    assert len(drawn) > 1
    assert load(*known, turn("x", "x", 9.0, 1.0, None)) == guessed


def test_what_first_turns_find_cached_is_shared_by_a_callers_runs() -> None:
    found = load(*(turn(f"{number}", f"r{number}", number, 1.0, (100, 10, 64 * (number > 0))) for number in range(5)))
    plan = found.beginnings[0].plan
    assert (plan.shared_tokens, plan.legs[0].new_tokens) == (64, 36)
    few = load(*(turn(f"{number}", f"r{number}", number, 1.0, (100, 10, 64 * (number > 2))) for number in range(5)))
    assert few.beginnings[0].plan.shared_tokens == 0


def test_runs_begin_one_after_the_other_as_they_did() -> None:
    source = Planned(load(turn("1", "r", 1.0, 1.0), turn("2", "s", 3.0, 1.0)).beginnings)
    assert source.starts() == [(1.0, 0)]
    assert (source.next_at(0, 1.0), source.begin(0).run) == (3.0, "r")
    assert (source.next_at(0, 3.0), source.begin(0).run, source.follow(0)) == (None, "s", None)
    assert Planned(()).starts() == []


@pytest.mark.parametrize(
    ("turns", "said"),
    [([], "no run in it was answered"), (turn("1", "r", 0.0, 1.0, None), "no turn in it has token counts")],
)
def test_without_anything_to_simulate_the_way_out_is_told(turns: list[tuple[float, Event]], said: str) -> None:
    with pytest.raises(NoLoadError, match=said):
        load(turns)
