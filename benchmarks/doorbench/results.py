"""The stored result of a run, and the figures that tables and targets read from it.

The file holds what was measured, round by round; ratios and medians are computed on reading, so that a better summary
needs no new run.
"""

from pathlib import Path
from typing import Literal

import msgspec
from benchmarks.doorbench.behaviour import Behaviour
from benchmarks.doorbench.measure import Sample
from benchmarks.doorbench.statistics import Spread, differences, ratios, spread

from luftpause.testkit.bench.machine import Machine

Field = Literal[
    "requests_per_s",
    "p50_us",
    "p99_us",
    "first_p50_us",
    "first_p99_us",
    "late_p50_us",
    "late_p99_us",
    "cpu_us",
    "cpu_us_per_event",
    "cores_busy",
]


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """One run.

    Attributes:
        when: UTC, ISO 8601.
        mode: quick or full.
        arms: version by arm, in the order of the tables.
        absent: why an arm is missing, by arm.
        shapes: samples by shape, then by arm, one a round.
    """

    benchmark: Literal["door"] = "door"
    when: str
    commit: str
    mode: str
    seconds: float
    machine: Machine
    arms: dict[str, str]
    absent: dict[str, str]
    shapes: dict[str, dict[str, list[Sample]]]
    behaviour: dict[str, Behaviour]

    @property
    def rounds(self) -> int:
        """How many rounds were run."""
        return max((len(samples) for arms in self.shapes.values() for samples in arms.values()), default=0)

    def measured(self, shape: str) -> list[str]:
        """Return the arms that were measured in a shape, in the order of the tables."""
        return [arm for arm in self.arms if self.shapes.get(shape, {}).get(arm)]

    def series(self, shape: str, arm: str, field: Field) -> list[float | None]:
        """Return one figure of one arm, a value a round."""
        values: list[float | None] = [getattr(sample, field) for sample in self.shapes.get(shape, {}).get(arm, [])]
        return values

    def middle(self, shape: str, arm: str, field: Field) -> Spread | None:
        """Return its median and spread, None when it was not measured."""
        return _spread([value for value in self.series(shape, arm, field) if value is not None])

    def ratio(self, shape: str, field: Field, arm: str, to: str) -> Spread | None:
        """Return arm ÷ to, round by round."""
        return _spread(ratios(self.series(shape, arm, field), self.series(shape, to, field)))

    def added(self, shape: str, field: Field, arm: str) -> Spread | None:
        """Return arm − direct, round by round."""
        return _spread(differences(self.series(shape, arm, field), self.series(shape, "direct", field)))

    def added_ratio(self, shape: str, field: Field, arm: str, to: str) -> float | None:
        """Return the median added by the arm ÷ the median added by another; None when the other adds nothing."""
        ours, theirs = self.added(shape, field, arm), self.added(shape, field, to)
        return ours.median / theirs.median if ours and theirs and theirs.median > 0 else None

    def added_at_best(self, shape: str, field: Field, arm: str) -> float | None:
        """Return the arm's best round − direct's best round: the tail that the arm causes, not the machine."""
        ours, direct = self.middle(shape, arm, field), self.middle(shape, "direct", field)
        return ours.low - direct.low if ours and direct else None

    def failed(self, shape: str, arm: str) -> int:
        """Return how many exchanges failed over all rounds."""
        return sum(sample.failed for sample in self.shapes.get(shape, {}).get(arm, []))


def _spread(values: list[float]) -> Spread | None:
    return spread(values) if values else None


def load_results(path: Path) -> Results:
    """Read a stored run.

    Raises:
        OSError: the file cannot be read.
        msgspec.ValidationError: it is no result of this benchmark.
    """
    return msgspec.json.decode(path.read_bytes(), type=Results)


def store_results(results: Results, path: Path) -> None:
    """Write a run as indented JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
