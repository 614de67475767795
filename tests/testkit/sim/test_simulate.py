"""One scenario, one arm, one seed; and what several come to."""

import json

import pytest

from luftpause.testkit.sim import simulate as module
from luftpause.testkit.sim.figures import Figures, spreads
from luftpause.testkit.sim.report import headings, report_json, rows
from luftpause.testkit.sim.simulate import BrokenRuleError, Simulated, simulate
from luftpause.testkit.sim.world import World
from testkit.sim.worlds import crowd


def test_runs_of_the_counted_time_become_figures() -> None:
    seen: list[tuple[float, float]] = []
    result = simulate(crowd(), "router", 1, checked=True, progress=lambda done, whole: seen.append((done, whole)))
    figures = result.figures
    assert seen[0] == (10.0, 70.0)
    assert seen[-1] == (70.0, 70.0)
    assert figures.interactive_runs_per_min > 1
    assert figures.batch_runs_per_min > figures.interactive_runs_per_min
    assert figures.interactive_p50_s is not None
    assert figures.interactive_p99_s is not None
    assert figures.interactive_p50_s <= figures.interactive_p99_s
    assert (figures.unfinished_runs, figures.failed_runs, figures.moves_per_run) == (18, 0, 0)
    assert result.took_s > 0


def test_a_broken_rule_is_told_with_what_shows_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_until(world: World, at: float) -> None:
        raise AssertionError(f"two turns became one at {at}")

    monkeypatch.setattr(World, "run_until", run_until)
    with pytest.raises(BrokenRuleError, match=r"crowd, arm direct, seed 3, at 0\.000 s: two turns became one"):
        module.simulate(crowd(), "direct", 3)


def test_seeds_become_medians_with_their_spread() -> None:
    found = spreads([some(3.0), some(9.0), some(None), some(4.0)])["interactive_p50_s"]
    assert (found.median, found.low, found.high) == (4.0, 3.0, 9.0)
    assert found.by_seed == (3.0, 9.0, None, 4.0)
    assert spreads([some(None)])["interactive_p50_s"].median is None


def test_the_table_shows_medians_and_the_json_everything() -> None:
    results = {
        "direct": [simulated(3.0), simulated(5.0)],
        "router": [simulated(None), simulated(None)],
    }
    table = rows(results)
    assert table[0][:3] == ("direct", "2.0 (2.0–2.0)", "4.0 (3.0–5.0)")
    assert table[0][-1] == "30"
    assert table[1][2] == "-"
    assert len(headings()) == len(table[0])
    report = json.loads(report_json(crowd(), (1, 2), results))
    assert (report["scenario"], report["seeds"]) == ("crowd", [1, 2])
    assert report["arms"][0]["arm"] == "direct"
    assert report["arms"][0]["interactive_p50_s"] == {"median": 4.0, "low": 3.0, "high": 5.0, "by_seed": [3.0, 5.0]}
    assert rows({"direct": [simulated(3.0)]})[0][2] == "3.0"


def simulated(p50_s: float | None) -> Simulated:
    return Simulated(figures=some(p50_s), simulated_s=60.0, took_s=2.0)


def some(p50_s: float | None) -> Figures:
    return Figures(
        interactive_runs_per_min=2.0,
        interactive_p50_s=p50_s,
        interactive_p99_s=8.0,
        batch_runs_per_min=3.0,
        batch_p50_s=1.0,
        batch_p99_s=2.0,
        reprefilled_tokens_per_run=1234.5,
        moves_per_run=0.0,
        failed_runs=0,
        failed_turns=0,
        retractions=0,
        unfinished_runs=1,
        loads=0,
        longest_turn_s=4.0,
    )
