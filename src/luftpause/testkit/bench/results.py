"""The stored result of a workload: every figure as a median with its spread, verdicts, and where it was measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from luftpause.testkit.bench.claims import Samples, Verdict
from luftpause.testkit.bench.curves import middle_curves
from luftpause.testkit.bench.machine import Machine
from luftpause.testkit.bench.samples import FIGURES, Curves, Sample
from luftpause.testkit.sim.figures import Spread, spread_of

EngineShell = Literal["sim", "http", "llama"]

AT: Final = "@"
"""Between an arm and the commit that it is of."""

_OWN_KEYS = ("arm", "scenario", "broken", "curves")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmResult:
    """An arm in a scenario. `broken`: the rules that were broken, one text for each seed that broke one."""

    arm: str
    scenario: str
    figures: Mapping[str, Spread]
    curves: Curves = field(default_factory=Curves)
    broken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadResult:
    """A workload on all its arms.

    Attributes:
        engine: which shell: virtual time, modelled engines over HTTP, or llama.cpp's server.
        commit: of luftpause.
        when: UTC, ISO 8601.
        seconds: how long it took.
        absent: why an arm is missing, by arm.
        setup: how it was set up where that is no matter of the workload, by name, for people.
        versions: of other people's programs that were measured, by name; of models of them there are none.
    """

    workload: str
    engine: EngineShell
    commit: str
    when: str
    seeds: tuple[int, ...]
    seconds: float
    machine: Machine
    arms: tuple[ArmResult, ...]
    verdicts: tuple[Verdict, ...]
    absent: Mapping[str, str]
    setup: Mapping[str, str]
    versions: Mapping[str, str] = field(default_factory=dict)


def arm_results(samples: Samples) -> tuple[ArmResult, ...]:
    """Return what the seeds of each scenario and arm come to."""
    return tuple(
        _arm_result(scenario, arm, seeds) for scenario, arms in samples.items() for arm, seeds in arms.items() if seeds
    )


def _arm_result(scenario: str, arm: str, seeds: Sequence[Sample]) -> ArmResult:
    names = [*FIGURES, *sorted({name for sample in seeds for name in sample.figures} - set(FIGURES))]
    return ArmResult(
        arm=arm,
        scenario=scenario,
        figures={name: spread_of([sample.figure(name) for sample in seeds]) for name in names},
        curves=middle_curves([sample.curves for sample in seeds]),
        broken=tuple(sample.broken for sample in seeds if sample.broken),
    )


def samples_of(arms: Sequence[ArmResult]) -> dict[str, dict[str, list[Sample]]]:
    """Return the seeds' figures again, as far as they are stored."""
    found: dict[str, dict[str, list[Sample]]] = {}
    for each in arms:
        count = max((len(spread.by_seed) for spread in each.figures.values()), default=0)
        figures = [{name: spread.by_seed[seed] for name, spread in each.figures.items()} for seed in range(count)]
        broken = [*each.broken, *[""] * (count - len(each.broken))]
        found.setdefault(each.scenario, {})[each.arm] = [
            Sample(figures=figure, curves=each.curves, broken=text)
            for figure, text in zip(figures, broken, strict=True)
        ]
    return found


def flat(arm: ArmResult) -> dict[str, Any]:
    """Return an arm as JSON has it: its figures stand beside its name."""
    built: dict[str, Any] = msgspec.to_builtins(arm)
    return {"arm": built.pop("arm"), "scenario": built.pop("scenario"), **built.pop("figures"), **built}


def has_curves(result: WorkloadResult) -> bool:
    """Say whether there is anything to plot."""
    return any(arm.curves.run_s or arm.curves.cached for arm in result.arms)


def to_json(result: WorkloadResult) -> bytes:
    """Return a result as JSON with a line for each key and for each arm."""
    built: dict[str, Any] = {"benchmark": "bench", **msgspec.to_builtins(result)}
    arms = ",\n".join("  " + msgspec.json.encode(flat(arm)).decode() for arm in result.arms)
    lines = [
        f'"{key}": ' + (f"[\n{arms}\n ]" if key == "arms" else msgspec.json.encode(value).decode())
        for key, value in built.items()
    ]
    return ("{\n " + ",\n ".join(lines) + "\n}\n").encode()


def from_json(text: bytes) -> WorkloadResult:
    """Read a stored result.

    Raises:
        msgspec.DecodeError: it is none.
    """
    built = msgspec.json.decode(text)
    if not isinstance(built, dict) or built.pop("benchmark", "") != "bench":
        raise msgspec.DecodeError("no result of the bench")
    for arm in built.get("arms", ()):
        arm["figures"] = {name: arm.pop(name) for name in list(arm) if name not in _OWN_KEYS}
    return msgspec.convert(built, WorkloadResult)


def file_name(result: WorkloadResult) -> str:
    """Return what its file is called among others."""
    return f"{result.workload}-{result.engine}.json"


def load_results(folder: Path) -> list[WorkloadResult]:
    """Read all results of a folder, in the order of their names.

    Raises:
        OSError: one cannot be read.
        msgspec.DecodeError: one is no result.
    """
    return [from_json(file.read_bytes()) for file in sorted(folder.glob("*.json"))]
