"""The shell of the bench that simulates: one scenario, one arm, one seed, in virtual time."""

import time
from dataclasses import asdict
from typing import Literal

import msgspec

from luftpause.testkit.bench.curves import curves_of
from luftpause.testkit.bench.samples import Sample
from luftpause.testkit.sim.scenario import Scenario, load_scenario
from luftpause.testkit.sim.simulate import BrokenRuleError, Simulated, simulate

Door = Literal["llm", "mcp", "decide"]
"""Where runs come in: turn by turn, as sub-agents over MCP, or as single-pass calls."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure. `minutes` is None for the scenario's own; only over HTTP does the door make a difference."""

    scenario: str
    arm: str
    seed: int
    minutes: float | None = None
    checked: bool = False
    door: Door = "llm"


def measure(job: Job) -> Sample:
    """Simulate it. A broken rule is a result, too.

    Raises:
        ConfigError: there is no such scenario.
        ValueError: there is no such arm.
    """
    scenario = load_scenario(job.scenario)
    if job.minutes is not None:
        scenario = msgspec.structs.replace(scenario, minutes=job.minutes)
    began = time.perf_counter()
    try:
        result = simulate(scenario, job.arm, job.seed, checked=job.checked)
    except BrokenRuleError as broken:
        return Sample(figures={"broken_rules": 1}, broken=str(broken), took_s=time.perf_counter() - began)
    return sample_of(scenario, result, checked=job.checked)


def sample_of(scenario: Scenario, result: Simulated, *, checked: bool) -> Sample:
    """Return what a simulation came to."""
    figures = {**asdict(result.figures), "broken_rules": 0 if checked else None}
    curves = curves_of(result.ended, result.answered, scenario.warmup_s, result.simulated_s)
    return Sample(figures=figures, curves=curves, took_s=result.took_s)
