"""One seed of one arm in virtual time."""

import pytest

from luftpause.testkit.bench import simulated as module
from luftpause.testkit.bench.simulated import Job, measure
from luftpause.testkit.sim.simulate import BrokenRuleError


def test_a_simulation_becomes_figures_and_curves() -> None:
    sample = measure(Job(scenario="w7-slow", arm="sglang-router-manual", seed=1, minutes=0.2))
    assert sample.figure("runs_per_min")
    assert set(sample.curves.run_s) == {"batch", "interactive"}
    assert sample.figure("broken_rules") is None
    assert measure(Job(scenario="w7-slow", arm="direct", seed=1, minutes=0.1, checked=True)).figure("broken_rules") == 0


def test_a_broken_rule_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def simulate(*_: object, **__: object) -> None:
        raise BrokenRuleError("a turn was lost")

    monkeypatch.setattr(module, "simulate", simulate)
    sample = measure(Job(scenario="w1", arm="direct", seed=1))
    assert (sample.broken, sample.figure("broken_rules")) == ("a turn was lost", 1)
