"""The runtime's section of `docs/MEASUREMENTS.md`, from a stored run."""

from collections.abc import Mapping
from typing import Final

from benchmarks.doorbench.report import table
from benchmarks.runtimebench.results import RuntimeResults

from luftpause.testkit.bench.machine import machine_line

TITLES: Final[Mapping[str, str]] = {
    "journal": "Journal: each record durable before its writer goes on, 1, 8 and 64 writers",
    "replay": "A start among finished runs",
    "compaction": "Eight writers while the journal is tidied up",
    "agents": "Sub-agents at once with a quick model, each two runs of three turns and tools that take a second",
    "live": "The same with a model that takes 350 ms a token: as many live, their spawns come evenly",
    "beside": "Chunks of streams paced at 20 ms through the LLM door, alone and beside spawns",
}
_UNITS: Final = ("ms", "us", "s", "mib")
LIMITS: Final[Mapping[tuple[str, str], float]] = {
    ("replay", "start_s"): 5.0,
    ("replay", "status_step_ms"): 5.0,
    ("live", "spawn_p99_ms"): 100.0,
}
ADDED_CHUNK_MS: Final = 10.0


def section(results: RuntimeResults) -> str:
    """Return the section, its heading included."""
    parts = "\n\n".join(
        f"### {TITLES[part]}\n\n{table(['figure', 'measured', 'limit'], _rows(part, figures))}"
        for part, figures in results.parts.items()
    )
    return f"""## The runtime

Runtime, scheduler and dataplane in one process as `luftpause up` has them, fake engines in their own. With a
quick model the sub-agents are a closed loop: as many runs as the process can carry, so spawns wait among all the rest.

- Run: {results.when}, commit {results.commit}.
- Machine: {machine_line(results.machine)}.

{parts}
"""


def _rows(part: str, figures: Mapping[str, float]) -> list[list[str]]:
    rows = [[_words(name), _shown(value), _verdict(value, LIMITS.get((part, name)))] for name, value in figures.items()]
    alone, beside = (figures.get(f"chunk_late_p99_ms_{when}") for when in ("alone", "with_spawns"))
    if alone is not None and beside is not None:
        added = beside - alone
        rows.append(["added to chunk p99, ms", _shown(added), _verdict(added, ADDED_CHUNK_MS)])
    return rows


def _words(name: str) -> str:
    """Return a figure's name for people: `append_p99_ms_8` is `append p99 8, ms`."""
    words = name.replace("per_s", "a second").replace("cpu_ms_per", "CPU ms per").split("_")
    unit = next((word for word in words if word in _UNITS), "")
    if unit:
        words.remove(unit)
    return " ".join(words) + (f", {unit.replace('us', 'µs').replace('mib', 'MiB')}" if unit else "")


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}" if value == round(value, 2) else f"{value:.2f}"


def _verdict(value: float, limit: float | None) -> str:
    if limit is None:
        return ""
    return f"≤ {limit:g}: **{'met' if value <= limit else f'missed by {value / limit:.2f}×'}**"
