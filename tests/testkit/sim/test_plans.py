"""What a simulated run contains."""

import statistics

import msgspec
import pytest

from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.sim.agent_groups import Fan, People, Skewed, Stragglers, ToolTimes
from luftpause.testkit.sim.plans import AWAITS, NO_TOOL, RunPlan, alone_s, draw_plan
from testkit.sim.worlds import family, group


def test_a_run_contains_the_same_whenever_it_begins() -> None:
    legs = draw_plan(group(), 1, 7).legs
    assert legs == draw_plan(group(), 1, 7).legs
    assert legs != draw_plan(group(), 1, 8).legs
    assert legs != draw_plan(group(), 2, 7).legs
    assert 2 <= len(legs) <= 4
    assert [leg.away_s is None for leg in legs] == [False] * (len(legs) - 1) + [True]


def test_tools_are_drawn_by_their_shares() -> None:
    tools = (ToolTimes(median_s=1.0, share=3.0), ToolTimes(median_s=50.0, share=1.0))
    mixed = msgspec.structs.replace(group(), tools=tools)
    legs = [leg for number in range(500) for leg in draw_plan(mixed, 1, number).legs if leg.away_s is not None]
    assert {(leg.tool, round(leg.away_s or 0.0)) for leg in legs} == {("batch-0", 1), ("batch-1", 50)}
    assert statistics.fmean(leg.tool == "batch-1" for leg in legs) == pytest.approx(0.25, abs=0.04)
    alike = msgspec.structs.replace(mixed, tools=tuple(msgspec.structs.replace(tool, name="shell") for tool in tools))
    assert {leg.tool for leg in draw_plan(alike, 1, 0).legs if leg.paused} == {"shell"}


def test_runs_belong_to_the_callers_in_turn() -> None:
    assert [draw_plan(group(callers=2), 1, number).caller for number in range(3)] == ["batch-0", "batch-1", "batch-0"]


def tree(number: int, *sizes: Fan, seed: int = 1) -> RunPlan:
    groups = {each.name: each for each in family(*sizes).agents}
    return draw_plan(groups["parent"], seed, number, groups)


def test_a_parent_begins_its_children_ahead_of_its_last_turn_and_reads_their_results_then() -> None:
    plan = tree(3, Fan(children=4))
    *_, begins, last = plan.legs
    assert (begins.tool, begins.enough, begins.away_s, len(begins.children)) == (AWAITS, 4, 0.0, 4)
    assert last.away_s is None
    assert 4 * 20 <= last.new_tokens <= 4 * 80
    assert {child.parent for child in begins.children} == {plan.run}
    assert {child.caller for child in begins.children} == {plan.caller}
    assert len({child.run for child in begins.children}) == 4


def test_a_tree_is_the_same_whoever_serves_it_and_its_sizes_are_drawn_by_their_shares() -> None:
    fans = (Fan(children=1, share=3.0), Fan(children=2, share=1.0))
    assert tree(7, *fans) == tree(7, *fans)
    assert tree(7, *fans) != tree(7, *fans, seed=2)
    sizes = [len(tree(number, *fans).legs[-2].children) for number in range(400)]
    assert statistics.fmean(size == 2 for size in sizes) == pytest.approx(0.25, abs=0.06)


def test_stragglers_take_more_rounds() -> None:
    slow = msgspec.structs.replace(group(), stragglers=Stragglers(share=0.2, tool_calls=(7, 9)))
    legs = [len(draw_plan(slow, 1, number).legs) for number in range(300)]
    assert statistics.fmean(count > 7 for count in legs) == pytest.approx(0.2, abs=0.07)


def test_alone_a_run_takes_what_it_computes_writes_and_waits_for() -> None:
    plan = draw_plan(group(system_tokens=100), 1, 1)
    engine = EngineFigures(step_s=0.01, decode_s=0.0, prefill_tps=1000.0)
    prompts = 100 + sum(leg.new_tokens for leg in plan.legs)
    replies = sum(leg.reply_tokens for leg in plan.legs)
    away = sum(leg.away_s or 0.0 for leg in plan.legs)
    assert alone_s(plan, engine) == pytest.approx(prompts / 1000 + replies * 0.01 + away)


def test_skewed_amounts_have_their_median_and_stay_between_their_ends() -> None:
    skewed = msgspec.structs.replace(group(), tool_calls=Skewed(median=20, sigma=1.0, least=4, most=100))
    rounds = [len(draw_plan(skewed, 1, number).legs) - 1 for number in range(1000)]
    assert statistics.median(rounds) == pytest.approx(20, abs=2)
    assert (min(rounds), max(rounds)) == (4, 100)
    assert statistics.fmean(each == 100 for each in rounds) == pytest.approx(0.054, abs=0.02), (
        "beyond an end is that end"
    )


def test_a_prompt_that_would_be_too_long_begins_anew() -> None:
    compacting = msgspec.structs.replace(group(system_tokens=50), tool_calls=(60, 60), compact_at=1500)
    legs = draw_plan(compacting, 1, 0).legs
    assert len(legs) == 61
    assert 2 <= sum(leg.rewritten for leg in legs) <= 8
    prompt = 50
    for before, leg in zip((None, *legs), legs, strict=False):
        prompt = 50 if leg.rewritten else prompt + (before.reply_tokens if before is not None else 0)
        prompt += leg.new_tokens
        assert prompt <= 1500
        assert not leg.rewritten or 300 <= leg.new_tokens <= 500
    longer = msgspec.structs.replace(compacting, compact_at=0)
    assert not any(leg.rewritten for leg in draw_plan(longer, 1, 0).legs)


def test_people_answer_in_their_share_of_the_rounds_and_nothing_takes_longer_than_it_may() -> None:
    people = People(median_s=100.0, sigma=1.0, most_s=150.0, share=0.25)
    tools = (ToolTimes(median_s=1.0, sigma=1.0, most_s=2.0),)
    asking = msgspec.structs.replace(group(), tools=tools, people=people)
    legs = [leg for number in range(500) for leg in draw_plan(asking, 1, number).legs if leg.away_s is not None]
    asked = [leg for leg in legs if not leg.paused]
    assert len(asked) / len(legs) == pytest.approx(0.25, abs=0.04)
    assert {leg.tool for leg in asked} == {NO_TOOL}
    assert all(leg.tool != NO_TOOL for leg in legs if leg.paused)
    assert max(leg.away_s or 0.0 for leg in asked) == 150.0
    assert max(leg.away_s or 0.0 for leg in legs if leg.paused) == 2.0
