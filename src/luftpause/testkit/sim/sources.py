"""Where a world's runs come from: the seam between the world and what it simulates, and a scenario as a source."""

from collections.abc import Sequence
from itertools import count
from typing import Protocol

from luftpause.testkit.sim.agent_groups import AgentGroup
from luftpause.testkit.sim.dice import Dice
from luftpause.testkit.sim.plans import RunPlan, draw_plan
from luftpause.testkit.sim.scenario import Scenario


class Source(Protocol):
    """Streams of runs, by number. A run begins by the clock, or when another of its stream has ended."""

    def starts(self) -> Sequence[tuple[float, int]]:
        """Return when a run begins first, and in which stream; a stream may stand here several times."""
        ...

    def next_at(self, stream: int, now: float) -> float | None:
        """A run begins now: return when the next one of its stream does; None if that is not for the clock to say."""
        ...

    def begin(self, stream: int) -> RunPlan:
        """Return the stream's next run, which begins now."""
        ...

    def follow(self, stream: int) -> RunPlan | None:
        """A run has ended: return the one that begins in its stead, if there is one."""
        ...


class Drawn:
    """A scenario's agents, each group a stream: closed loops and open ones. All is drawn from the seed by name."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._ramp_s = scenario.ramp_s
        self._groups = scenario.agents
        self._by_name = {group.name: group for group in scenario.agents}
        self._seed = seed
        self._numbers = [count() for _ in scenario.agents]
        self._begun = [0] * len(scenario.agents)
        self._dice = [Dice(f"begin {seed} {group.name}") for group in scenario.agents]

    def starts(self) -> Sequence[tuple[float, int]]:
        """Return the beginning of each loop."""
        found = []
        for stream, (group, dice) in enumerate(zip(self._groups, self._dice, strict=True)):
            found += [(dice.unit() * self._ramp_s, stream) for _ in range(group.count)]
            if group.runs_per_min:
                found.append((_gap_s(group, dice), stream))
        return found

    def next_at(self, stream: int, now: float) -> float | None:
        """Draw the next arrival of an open loop."""
        group = self._groups[stream]
        if not group.runs_per_min:
            return None
        self._begun[stream] += 1
        return now if self._begun[stream] % group.burst else now + _gap_s(group, self._dice[stream])

    def begin(self, stream: int) -> RunPlan:
        """Draw a run."""
        return draw_plan(self._groups[stream], self._seed, next(self._numbers[stream]), self._by_name)

    def follow(self, stream: int) -> RunPlan | None:
        """Draw the next run of a closed loop."""
        return self.begin(stream) if self._groups[stream].count else None


def _gap_s(group: AgentGroup, dice: Dice) -> float:
    """Draw the time until the next burst."""
    return dice.exponential(60.0 * group.burst / group.runs_per_min)
