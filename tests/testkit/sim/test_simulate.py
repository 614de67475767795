"""One scenario, one arm, one seed; and what several come to."""

import pytest

from luftpause.testkit.sim import simulate as module
from luftpause.testkit.sim.simulate import BrokenRuleError, simulate
from luftpause.testkit.sim.world import World
from testkit.sim.worlds import crowd


def test_runs_of_the_counted_time_become_figures() -> None:
    seen: list[tuple[float, float]] = []
    result = simulate(
        crowd(), "sglang-router", 1, checked=True, progress=lambda done, whole: seen.append((done, whole))
    )
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
    assert len(result.ended) == round(figures.runs_per_min)
    assert all(10.0 < turn.ended_at <= 70.0 for turn in result.answered)


def test_a_broken_rule_is_told_with_what_shows_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_until(world: World, at: float) -> None:
        raise AssertionError(f"two turns became one at {at}")

    monkeypatch.setattr(World, "run_until", run_until)
    with pytest.raises(BrokenRuleError, match=r"crowd, arm direct, seed 3, at 0\.000 s: two turns became one"):
        module.simulate(crowd(), "direct", 3)
