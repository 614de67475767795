"""What a simulated run contains."""

import statistics

import msgspec
import pytest

from luftpause.testkit.sim.plans import draw_plan
from luftpause.testkit.sim.scenario import ToolTimes
from testkit.sim.worlds import group


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
    times = [leg.away_s for number in range(500) for leg in draw_plan(mixed, 1, number).legs if leg.away_s is not None]
    assert set(map(round, times)) == {1, 50}
    assert statistics.fmean(time > 10 for time in times) == pytest.approx(0.25, abs=0.04)


def test_runs_belong_to_the_callers_in_turn() -> None:
    assert [draw_plan(group(callers=2), 1, number).caller for number in range(3)] == ["batch-0", "batch-1", "batch-0"]
