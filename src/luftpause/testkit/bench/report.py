"""Stored results as the section of a document: what is not shown, every claim, then every figure. Pure."""

from collections.abc import Callable, Sequence
from typing import Final

from luftpause.testkit.bench.claims import Verdict
from luftpause.testkit.bench.machine import machine_line
from luftpause.testkit.bench.pieces import TOLD, pieces_table
from luftpause.testkit.bench.results import AT, EngineShell, WorkloadResult, has_curves
from luftpause.testkit.bench.tables import BEST, NONE, arms_table, markdown, verdicts_table
from luftpause.testkit.bench.workloads import OURS, TUNED, WORKLOADS, Workload

SHELLS: Final[dict[EngineShell, str]] = {
    "sim": "virtual time: the real scheduling core against modelled engines; other routers are models of them",
    "http": "real processes over HTTP against modelled engines",
    "llama": "real processes over HTTP against llama.cpp's server, single-pass calls against a real small classifier",
}
"""What stands behind an engine's name."""


def section(results: Sequence[WorkloadResult], pictures: str) -> str:
    """Return the section of the bench, its heading included; `pictures` is where a document finds the plots."""
    if not results:
        return ""
    parts = "\n".join(_workload(result, pictures) for result in results)
    return f"""## Scheduling

What `luftpause bench` measures: every arm meets the same runs with the same tools, seed by seed. A figure is the median
over the seeds, with the least and the greatest in brackets; × is the median of the ratios within each seed.
Absolute figures are those of the engine model: only ratios mean anything. {counted(results)}

### Every claim

A row for each arm that it is made of; in a cell the verdict, what was measured, and ÷ the best other arm's figure.

{_folded(results)}

{parts}"""


def not_reached(results: Sequence[WorkloadResult]) -> str:
    """Return how many claims our policies meet, and which ones the policy that is to win misses, and why."""
    if not results:
        return ""
    missed = any(_is_missed(verdict) for result in results for verdict in result.verdicts)
    table = _shown(results, _is_missed) if missed else ""
    why = "\n".join(f"- {line}" for line in why_missed(results))
    others = [_second_opinion(workload, results) for workload in WORKLOADS.values() if _misses(workload, results)]
    return "\n\n".join(part for part in (counted(results), table, why, *others) if part) + "\n"


def _misses(workload: Workload, results: Sequence[WorkloadResult]) -> bool:
    return any(
        _is_missed(verdict) for result in results if result.workload == workload.name for verdict in result.verdicts
    )


def _second_opinion(workload: Workload, results: Sequence[WorkloadResult]) -> str:
    """Return what comes of the same claims where they are made of other runs, as far as that was measured."""
    other = WORKLOADS.get(workload.second_opinion)
    if other is None or all(result.workload != other.name for result in results):
        return ""
    best = OURS[-1]
    asked = [result for result in results if result.workload == other.name]
    met = [each.met for result in asked for each in result.verdicts if each.arm == best]
    title = other.title[:1].lower() + other.title[1:]
    return (
        f"The claims of {workload.name}, met or missed, on the runs of {other.name}, {title}; `{best}` meets "
        f"{sum(met)} of {len(met)}:\n\n{_shown(asked, lambda each: each.arm == best)}"
    )


def _is_missed(verdict: Verdict) -> bool:
    """Say whether the policy that is to win does not show it, or was never measured in it."""
    return verdict.arm == OURS[-1] and not verdict.met


def why_missed(results: Sequence[WorkloadResult]) -> list[str]:
    """Return a line for each workload of which the policy that is to win misses something, if it is known why."""
    missed = {
        result.workload: WORKLOADS[result.workload].why_missed
        for result in results
        if result.workload in WORKLOADS
        and any(_is_missed(verdict) and verdict.value is not None for verdict in result.verdicts)
    }
    return [f"{name}: {why}" for name, why in missed.items() if why]


def counted(results: Sequence[WorkloadResult]) -> str:
    """Return how many claims each of our policies meets, and other arms."""
    verdicts = [verdict for result in results for verdict in result.verdicts]
    said = []
    names = dict.fromkeys(verdict.arm for verdict in verdicts)
    ours = [name for arm in reversed(OURS) for name in names if name.partition(AT)[0] == arm]
    for arm in ours:
        met = [verdict.met for verdict in verdicts if verdict.arm == arm]
        if met:
            said.append(f"`{arm}` meets {sum(met)} of its {len(met)} claims")
    others = [verdict.met for verdict in verdicts if verdict.arm not in ours]
    if others:
        said.append(f"other arms meet {sum(others)} of the {len(others)} that are made of every arm")
    return "; ".join(said) + "." if said else ""


def _shown(results: Sequence[WorkloadResult], among: Callable[[Verdict], bool]) -> str:
    chosen = [(verdict, result.engine) for result in results for verdict in result.verdicts if among(verdict)]
    header, rows = verdicts_table([verdict for verdict, _ in chosen])
    shells = [shell for _, shell in chosen]
    bold = [(*row[:3], f"**{row[3]}**", *row[4:], shell) for row, shell in zip(rows, shells, strict=True)]
    return markdown(((*header, "engine"), bold))


def _folded(results: Sequence[WorkloadResult]) -> str:
    """Return all verdicts, those of the same claim on several engines beside each other."""
    cells: dict[tuple[str, str], dict[EngineShell, str]] = {}
    for result in results:
        for row in verdicts_table(result.verdicts)[1]:
            claim, arm, measured, judged, rival = row
            text = f"**{judged}** {measured}" + ("" if rival == NONE else f", {rival}")
            by_engine = cells.setdefault((claim, arm), {})
            by_engine[result.engine] = "; ".join(filter(None, (by_engine.get(result.engine), text)))
    engines = [engine for engine in SHELLS if any(engine in row for row in cells.values())]
    rows = [(claim, arm, *(row.get(engine, "") for engine in engines)) for (claim, arm), row in cells.items()]
    return markdown((("must show", "arm", *engines), rows))


def _workload(result: WorkloadResult, pictures: str) -> str:
    workload = WORKLOADS.get(result.workload)
    title = workload.title if workload is not None else result.workload
    columns = workload.columns if workload is not None else ("runs_per_min", "run_p50_s")
    setup = "".join(f", {name} {value}" for name, value in result.setup.items())
    lines = [
        f"### {result.workload}: {title}",
        "",
        f"- Engine `{result.engine}`: {SHELLS[result.engine]}{setup}.",
        f"- Run: {result.when}, commit {result.commit}, seeds {', '.join(map(str, result.seeds))}, "
        f"{result.seconds:.0f} s.",
        f"- Machine: {machine_line(result.machine)}.",
        f"- Repeat it with `{_command(result)}`.",
    ]
    lines += [f"- Versions: {', '.join(map(' '.join, result.versions.items()))}."] if result.versions else []
    lines += [f"- Absent: {arm} ({' '.join(why.split())})." for arm, why in result.absent.items()]
    lines += [f"- **A rule was broken**: {text}" for arm in result.arms for text in arm.broken]
    for scenario in dict.fromkeys(arm.scenario for arm in result.arms):
        arms = [arm for arm in result.arms if arm.scenario == scenario]
        against = next((claim.against for claim in workload.claims if claim.against), TUNED) if workload else TUNED
        baseline = against if against in {arm.arm for arm in arms} else arms[0].arm
        lines += [
            "",
            f"`{scenario}`, × is to {baseline}, \\{BEST} is best:",
            "",
            markdown(arms_table(arms, columns, baseline)),
        ]
    if (pieces := pieces_table(result)) is not None:
        lines += ["", f"What each piece is worth. {TOLD}", "", markdown(pieces)]
    if has_curves(result):
        picture = f"{pictures}/{result.workload}-{result.engine}.svg"
        lines += ["", f"![Run times and cache of {result.workload}]({picture})"]
    return "\n".join([*lines, ""])


def _command(result: WorkloadResult) -> str:
    """Return the command that measures it again."""
    words = ["luftpause bench", result.workload]
    words += [] if result.engine == "sim" else [f"--engine {result.engine}"]
    words += [f"--seed {result.seeds[0]}"] if result.seeds[0] != 1 else []
    words += [f"--seeds {len(result.seeds)}"]
    minutes = result.setup.get("minutes")
    words += [f"--minutes {minutes.split()[0]}"] if minutes else []
    return " ".join(words)
