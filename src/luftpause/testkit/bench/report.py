"""Stored results as the section of a document: what is shown and what is not, then every figure. Pure."""

from collections.abc import Sequence

from luftpause.testkit.bench.claims import Verdict
from luftpause.testkit.bench.machine import machine_line
from luftpause.testkit.bench.results import WorkloadResult, has_curves
from luftpause.testkit.bench.tables import arms_table, markdown, verdicts_table
from luftpause.testkit.bench.workloads import TUNED, WORKLOADS

SHELLS = {
    "sim": "virtual time: the real scheduling core against modelled engines; other routers are models of them",
    "http": "real processes over HTTP against modelled engines",
    "llama": "real processes over HTTP against llama.cpp's server, single-pass calls against a real small classifier",
}
"""What stands behind an engine's name."""


def section(results: Sequence[WorkloadResult], pictures: str) -> str:
    """Return the section of the bench, its heading included; `pictures` is where a document finds the plots."""
    if not results:
        return ""
    verdicts = [verdict for result in results for verdict in result.verdicts]
    parts = "\n".join(_workload(result, pictures) for result in results)
    return f"""## Scheduling

What `luftpause bench` measures: every arm meets the same runs with the same tools, seed by seed. A figure is the median
over the seeds, with the least and the greatest in brackets; × is the median of the ratios within each seed.
Absolute figures are those of the engine model: only ratios mean anything. {_counted(verdicts)}

{_shown(results)}

{parts}"""


def _counted(verdicts: Sequence[Verdict]) -> str:
    met = sum(verdict.met for verdict in verdicts)
    return f"Of {len(verdicts)} claims {met} are met."


def _shown(results: Sequence[WorkloadResult]) -> str:
    header, rows = verdicts_table([verdict for result in results for verdict in result.verdicts])
    shells = [result.engine for result in results for _ in result.verdicts]
    bold = [(*row[:3], f"**{row[3]}**", *row[4:], shell) for row, shell in zip(rows, shells, strict=True)]
    return markdown(((*header, "engine"), bold))


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
    ]
    lines += [f"- Absent: {arm} ({' '.join(why.split())})." for arm, why in result.absent.items()]
    lines += [f"- **A rule was broken**: {text}" for arm in result.arms for text in arm.broken]
    for scenario in dict.fromkeys(arm.scenario for arm in result.arms):
        arms = [arm for arm in result.arms if arm.scenario == scenario]
        against = next((claim.against for claim in workload.claims if claim.against), TUNED) if workload else TUNED
        baseline = against if against in {arm.arm for arm in arms} else arms[0].arm
        lines += ["", f"`{scenario}`, × is to {baseline}:", "", markdown(arms_table(arms, columns, baseline))]
    if has_curves(result):
        picture = f"{pictures}/{result.workload}-{result.engine}.svg"
        lines += ["", f"![Run times and cache of {result.workload}]({picture})"]
    return "\n".join([*lines, ""])
