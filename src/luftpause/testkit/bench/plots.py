"""Results as a picture, as SVG text: how long runs take, and what caches still had over time. Pure."""

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from luftpause.telemetry.printable import printable
from luftpause.testkit.bench.ink import STYLE, looks
from luftpause.testkit.bench.panels import FOOT_H, TITLE_H, Axis, Line, Panel, drawn, round_axis
from luftpause.testkit.bench.results import ArmResult, EngineShell, WorkloadResult
from luftpause.testkit.bench.workloads import WORKLOADS

WIDTH: Final = 1040
"""As wide as what is read on a page, pixels, or its texts would be made small there."""

TOP: Final = 76
HEADING_H: Final = 34

SHOWN: Final = 0.98
"""The slowest runs are left out, or one of them would press all others together."""

SLICES: Final = 16
"""So many points of a course: what single moments show is chance."""

SHELLS: Final[dict[EngineShell, str]] = {
    "sim": "modelled engines in virtual time",
    "http": "modelled engines over HTTP",
    "llama": "llama.cpp's server",
}

_RANKS: Final = Axis(low=0, high=SHOWN, ticks=[(0.25, "p25"), (0.5, "p50"), (0.75, "p75"), (SHOWN, "p98")])
_TIME: Final = Axis(low=0, high=1, ticks=[(0, "begin"), (0.5, "counted time →"), (1, "end")])
_SHARES: Final = Axis(low=0, high=1, ticks=[(at / 4, f"{at * 25} %") for at in range(5)])


def plot(result: WorkloadResult) -> str:
    """Return the picture of a workload: for each of its scenarios how long runs take, by class, and its caches."""
    look_of = looks([arm.arm for arm in result.arms])
    scenarios = list(dict.fromkeys(arm.scenario for arm in result.arms))
    parts: list[str] = []
    y = TOP
    for scenario in scenarios:
        if scenarios != [result.workload]:
            parts.append(f'<text class="strong" x="16" y="{y + 18}">{escape(printable(scenario))}</text>')
            y += HEADING_H
        for row in _rows([arm for arm in result.arms if arm.scenario == scenario]):
            for column, panel in enumerate(row):
                across = WIDTH * column / len(row), WIDTH * (column + 1) / len(row)
                parts += drawn(panel, look_of, across, y)
            y += TITLE_H + max(panel.height for panel in row) + FOOT_H
    return "\n".join([*_head(result, y), *parts, "</svg>"]) + "\n"


def _head(result: WorkloadResult, height: int) -> list[str]:
    workload = WORKLOADS.get(result.workload)
    title = printable(result.workload) + ("" if workload is None else f": {workload.title}")
    seeds = f"{len(result.seeds)} seed{'s' * (len(result.seeds) != 1)}"
    source = f"{SHELLS[result.engine]}, {seeds}, commit {printable(result.commit)}"
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-labelledby="told">',
        f'<title id="told">{escape(title)}: run times and cache hits by arm; {escape(source)}</title>',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
        f'<text class="strong" x="16" y="30" font-size="17">{escape(title)}</text>',
        f'<text class="quiet" x="16" y="54">{escape(source)}</text>',
    ]


def _rows(arms: Sequence[ArmResult]) -> list[list[Panel]]:
    """Return the panels of a scenario, two beside each other, and the course of its caches in what is left."""
    classes = sorted({name for arm in arms for name in arm.curves.run_s}, reverse=True)  # interactive first
    panels = [_times(name, arms) for name in classes]
    cached = [Line(label=arm.arm, points=_course(arm)) for arm in arms if any(known for _, known in arm.curves.cached)]
    if cached:
        panels.append(
            Panel(title="known prompts found in caches", better="higher is better", x=_TIME, y=_SHARES, lines=cached)
        )
    return [panels[at : at + 2] for at in range(0, len(panels), 2)]


def _times(service_class: str, arms: Sequence[ArmResult]) -> Panel:
    lines = [
        Line(label=arm.arm, points=_ranked(arm.curves.run_s[service_class]))
        for arm in arms
        if arm.curves.run_s.get(service_class)
    ]
    longest = max((seconds for line in lines for _, seconds in line.points), default=0.0)
    title = f"{printable(service_class)} run time, s"
    return Panel(title=title, better="lower is better", x=_RANKS, y=round_axis(longest), lines=lines)


def _ranked(seconds: Sequence[float]) -> list[tuple[float, float]]:
    last = max(1, len(seconds) - 1)
    ranked = [(rank / last, value) for rank, value in enumerate(seconds)]
    return [point for point in ranked if point[0] <= SHOWN or point is ranked[0]]


def _course(arm: ArmResult) -> list[tuple[float, float]]:
    course = arm.curves.cached
    width = max(1, len(course) // SLICES)
    points = []
    for at in range(0, len(course), width):
        slices = course[at : at + width]
        found, known = (sum(each) for each in zip(*slices, strict=True))
        if known:
            points.append(((at + len(slices) / 2) / len(course), min(1.0, found / known)))
    return points
