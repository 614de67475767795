"""One scenario, one arm, one seed: run it and say what it came to."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from luftpause.testkit.sim.figures import Figures, figures_of
from luftpause.testkit.sim.past import AnsweredTurn, EndedRun
from luftpause.testkit.sim.scenario import Scenario
from luftpause.testkit.sim.setting import setting_of
from luftpause.testkit.sim.sources import Drawn
from luftpause.testkit.sim.world import World

SLICE_S: Final = 10.0
"""How much virtual time passes from one report of progress to the next."""

Progress = Callable[[float, float], None]
"""Told how many of how many seconds are simulated."""


class BrokenRuleError(Exception):
    """Something happened that must never happen. Its text says what, and how to see it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What one seed of one arm came to, and how long that took.

    Attributes:
        ended: the runs that ended in the counted time, well or not.
        answered: its turns.
        simulated_s: virtual time, as `took_s` is real time.
    """

    figures: Figures
    simulated_s: float
    took_s: float
    ended: Sequence[EndedRun] = ()
    answered: Sequence[AnsweredTurn] = ()


def simulate(
    scenario: Scenario, arm: str, seed: int, *, checked: bool = False, progress: Progress | None = None
) -> Simulated:
    """Run a scenario for its warm-up and its minutes.

    Args:
        scenario: what to simulate.
        arm: one of ARMS.
        seed: what is drawn from; the same seed gives the same figures.
        checked: prove every state and audit every decision, then let all runs end and check that nothing is left.
        progress: called now and then.

    Raises:
        BrokenRuleError: a rule of the world, or with `checked` one of the scheduler, was broken.
        ValueError: there is no such arm.
    """
    until = scenario.warmup_s + scenario.minutes * 60
    began = time.perf_counter()
    world = World(setting_of(scenario), Drawn(scenario, seed), arm, seed, checked=checked)
    try:
        while world.now < until:
            world.run_until(min(world.now + SLICE_S, until))
            if progress is not None:
                progress(world.now, until)
        took_s = time.perf_counter() - began
        figures = figures_of(world.past(), scenario, scenario.warmup_s, until)
        if checked:
            world.drain()
    except AssertionError as broken:
        raise BrokenRuleError(f"{scenario.name}, arm {arm}, seed {seed}, at {world.now:.3f} s: {broken}") from broken
    return Simulated(
        figures=figures,
        simulated_s=until,
        took_s=took_s,
        ended=[run for run in world.ended if scenario.warmup_s < run.ended_at <= until],
        answered=[turn for turn in world.answered if scenario.warmup_s < turn.ended_at <= until],
    )
