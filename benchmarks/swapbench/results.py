"""The stored result of a run of `scripts/swap`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from luftpause.testkit.bench.machine import Machine


class SwapResults(msgspec.Struct, frozen=True, kw_only=True):
    """One run. Times in milliseconds.

    Attributes:
        when: UTC, ISO 8601.
        load_after: the one-minute load average when it ended.
        phases: how long each took, by its name.
        cold: from nothing to the first answer, round by round, by who started the engine: `by hand` and `on demand`.
        quick: the same of an engine that needs no time to load.
        returning: a run's turn after its model was swapped out, load included, by what became of its KV: `parked` and
            `computed again`.
        warm: one turn, by who declared the replica: `static` and `on demand`.
    """

    benchmark: Literal["swap"] = "swap"
    when: str
    commit: str
    machine: Machine
    load_after: float
    phases: Mapping[str, float]
    cold: Mapping[str, Sequence[float]]
    quick: Mapping[str, Sequence[float]]
    warm: Mapping[str, Sequence[float]]
    returning: Mapping[str, Sequence[float]]


def store(results: SwapResults, path: Path) -> None:
    """Write a run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n")


def load(path: Path) -> SwapResults:
    """Read one.

    Raises:
        OSError: the file cannot be read.
        msgspec.ValidationError: it holds something else.
    """
    return msgspec.json.decode(path.read_bytes(), type=SwapResults)
