"""How long a paused run keeps its model up: the soft lease.

Where nobody needs the room, it lasts as long as the run may well come back: until 19 of 20 would be. Where somebody
does, the question is when the first of the runs is expected back: the median of what is left of its pause, which a few
that never returned do not move as they move a mean. A tool of which nothing is known has the operator's figure for
both. A parent that waits for a child is expected back no sooner than its child gets its model, so it keeps nothing
from that child.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from immutables import Map

from luftpause.core.model.ids import Instant, ModelName, RunId, ToolName
from luftpause.core.scheduling.residency.state import (
    NO_TOOL,
    PAUSE_STEP_S,
    Absence,
    Residency,
    ResidencyLimits,
)
from luftpause.core.scheduling.residency.uses import absence_of
from luftpause.core.scheduling.state import Part, Run
from luftpause.core.scheduling.tool_history import Tools
from luftpause.core.scheduling.tool_returns import ReturnLaw, return_law

LEASED_SHARE: Final = 0.95
"""So many of the pauses on a tool end before its runs stop to keep a model up."""

USUAL_SHARE: Final = 0.5
"""When so many are back, a run is about to be."""

LIKELY_SHARE: Final = 0.9
"""When so many would be back, nothing is loaded any more for the sake of one that is not."""

RETURNS_MIN: Final = 3
"""Before a tool has brought back so many, nothing is known of it."""

ANCESTORS_MAX: Final = 16


class Returns:
    """When runs come back from their tools, as seen at one instant, `now`. Works each tool's law out once."""

    def __init__(self, tools: Tools, limits: ResidencyLimits, now: Instant) -> None:
        self._tools = tools
        self._limits = limits
        self.now = now
        self._laws: dict[ToolName, ReturnLaw | None] = {}

    def leased_until(self, out: Mapping[Absence, int]) -> Instant | None:
        """Return until when runs that are out keep their model up where nobody needs its room; None: none does."""
        ends = [since + self._lease_s(tool) for tool, since in _pauses(out)]
        until = max(ends, default=None)
        return None if until is None or until <= self.now else Instant(until)

    def first_back_s(self, out: Mapping[Absence, int]) -> float | None:
        """Return in how many seconds the first of the runs that are out is expected back; None: none keeps a lease."""
        left = [
            self._left_s(tool, self.now - since)
            for tool, since in _pauses(out)
            if since + self._lease_s(tool) > self.now
        ]
        return min(left, default=None)

    def next_ahead(self, out: Mapping[Absence, int], load_s: float) -> Instant | None:
        """Return when to load a model so that it is up as the first of the runs comes back; None: not for these."""
        found: list[float] = []
        for tool, since in _pauses(out):
            law = self._law(tool)
            if law is None or since + law.quantile(LIKELY_SHARE) <= self.now:
                continue
            found.append(since + law.quantile(USUAL_SHARE) - load_s)
        first = min(found, default=None)
        return None if first is None else Instant(first)

    def _lease_s(self, tool: ToolName) -> float:
        law = self._law(tool)
        longest_s = self._limits.soft_lease_s_max
        return longest_s if law is None else min(longest_s, law.quantile(LEASED_SHARE))

    def _left_s(self, tool: ToolName, elapsed_s: float) -> float:
        law = self._law(tool)
        if law is None:
            return self._limits.unknown_tool_s
        elapsed_s = max(0.0, elapsed_s)
        return max(0.0, law.quantile(1.0 - law.survival(elapsed_s) / 2) - elapsed_s)

    def _law(self, tool: ToolName) -> ReturnLaw | None:
        if tool not in self._laws:
            history = None if tool == NO_TOOL else self._tools.histories.get(tool)
            known = history is not None and history.returned >= RETURNS_MIN
            self._laws[tool] = return_law(history) if known and history is not None else None
        return self._laws[tool]


def _pauses(out: Mapping[Absence, int]) -> Iterator[tuple[ToolName, float]]:
    """Yield each tool with each instant at which runs went out on it."""
    return ((tool, step * PAUSE_STEP_S) for tool, step in out)


def out_but(
    residency: Residency, model: ModelName, ancestors: Collection[Part], runs: Map[Part, Run]
) -> Map[Absence, int]:
    """Return who is out on a tool and will ask a model, but for some: how many since when on what."""
    out: Map[Absence, int] = residency.paused.get(model) or Map()
    for part in ancestors:
        absence = absence_of(runs[part]) if part[1] == model else None
        if absence is not None:
            count = out[absence] - 1
            out = out.set(absence, count) if count else out.delete(absence)
    return out


def ancestors_of(
    parents: Iterable[RunId | None], runs: Map[Part, Run], models_of: Map[RunId, tuple[ModelName, ...]]
) -> set[Part]:
    """Return these runs and all that they descend from, with every model that each asks."""
    found: set[Part] = set()
    seen: set[RunId] = set()
    for parent in parents:
        climbed = 0
        while parent is not None and parent not in seen and climbed < ANCESTORS_MAX:
            seen.add(parent)
            climbed += 1
            parts = [(parent, model) for model in models_of.get(parent, ())]
            found.update(parts)
            parent = next((above for part in parts if (above := runs[part].parent) is not None), None)
    return found


def root_of(run: Run, runs: Map[Part, Run], models_of: Map[RunId, tuple[ModelName, ...]]) -> RunId:
    """Return the run that stands above all others of a run's tree, as far as it is known."""
    name, parent, climbed = run.run, run.parent, 0
    while parent is not None and climbed < ANCESTORS_MAX:
        name, climbed = parent, climbed + 1
        models = models_of.get(name, ())
        parent = next((above for model in models if (above := runs[name, model].parent) is not None), None)
    return name
