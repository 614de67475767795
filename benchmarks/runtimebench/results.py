"""The stored result of a run of the runtime's benchmark."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from luftpause.testkit.bench.machine import Machine


class RuntimeResults(msgspec.Struct, frozen=True, kw_only=True):
    """One run.

    Attributes:
        when: UTC, ISO 8601.
        parts: figures by name, by part; their names end in their units.
    """

    benchmark: Literal["runtime"] = "runtime"
    when: str
    commit: str
    machine: Machine
    parts: Mapping[str, Mapping[str, float]]


def store(results: RuntimeResults, path: Path) -> None:
    """Write a run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n")


def load(path: Path) -> RuntimeResults:
    """Read one.

    Raises:
        OSError: the file cannot be read.
        msgspec.ValidationError: it holds something else.
    """
    return msgspec.json.decode(path.read_bytes(), type=RuntimeResults)
