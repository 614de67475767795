"""Results as a picture, as SVG text: run times as distributions, and what caches still had over time. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from luftpause.testkit.bench.results import ArmResult, WorkloadResult

PANEL_W: Final = 420
PANEL_H: Final = 240
GAP: Final = 70
LEFT: Final = 60
TOP: Final = 56
LEGEND_W: Final = 190
ROW_H: Final = PANEL_H + 92

COLOURS: Final = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#b8a800", "#0072b2", "#d55e00", "#cc79a7", "#7f7f7f")
"""Told apart by people who do not see all colours as well; from the tenth line on they are dashed."""

CDF_SHOWN: Final = 0.99
"""The slowest runs are left out of the axis, or one of them would press all others together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    label: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    title: str
    x_title: str
    x_max: float
    lines: Sequence[_Line]


def plot(result: WorkloadResult) -> str:
    """Return the picture of a workload: a row of panels for each of its scenarios."""
    scenarios = list(dict.fromkeys(arm.scenario for arm in result.arms))
    rows = [_panels(scenario, [arm for arm in result.arms if arm.scenario == scenario]) for scenario in scenarios]
    labels = list(dict.fromkeys(arm.arm for arm in result.arms))
    columns = max((len(row) for row in rows), default=1)
    width = LEFT + columns * (PANEL_W + GAP) + LEGEND_W
    height = TOP + len(rows) * ROW_H
    seeds = f"{len(result.seeds)} seed{'s' * (len(result.seeds) != 1)}"
    title = f"{result.workload}, engine {result.engine}, {seeds}, commit {result.commit}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
    ]
    for row, panels in enumerate(rows):
        for column, panel in enumerate(panels):
            parts += _drawn(panel, labels, LEFT + column * (PANEL_W + GAP), TOP + 20 + row * ROW_H)
    parts += _legend(labels, LEFT + columns * (PANEL_W + GAP) - 30, TOP + 20)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panels(scenario: str, arms: Sequence[ArmResult]) -> list[_Panel]:
    classes = list(dict.fromkeys(name for arm in arms for name in arm.curves.run_s))
    panels = [_times_panel(scenario, name, arms) for name in classes]
    cached = [_Line(label=arm.arm, points=_course(arm)) for arm in arms if any(known for _, known in arm.curves.cached)]
    if cached:
        panels.append(_Panel(title=f"{scenario}: found in cache", x_title="share of the time", x_max=1, lines=cached))
    return panels


def _times_panel(scenario: str, name: str, arms: Sequence[ArmResult]) -> _Panel:
    lines, longest = [], 0.0
    for arm in arms:
        ranked = arm.curves.run_s.get(name, ())
        if ranked:
            last = len(ranked) - 1
            longest = max(longest, ranked[int(last * CDF_SHOWN)])
            points = [(seconds, rank / max(1, last)) for rank, seconds in enumerate(ranked)]
            lines.append(_Line(label=arm.arm, points=points))
    return _Panel(
        title=f"{scenario}: {name} runs that took no longer", x_title="run time, s", x_max=longest, lines=lines
    )


def _course(arm: ArmResult) -> list[tuple[float, float]]:
    course = arm.curves.cached
    return [
        ((slot + 0.5) / len(course), min(1.0, found / known)) for slot, (found, known) in enumerate(course) if known
    ]


def _drawn(panel: _Panel, labels: Sequence[str], left: float, top: float) -> list[str]:
    x_max = panel.x_max or 1.0
    parts = [
        f'<text x="{left}" y="{top - 8}" font-weight="bold">{escape(panel.title)}</text>',
        f'<rect x="{left}" y="{top}" width="{PANEL_W}" height="{PANEL_H}" fill="none" stroke="#999999"/>',
    ]
    for step in range(5):
        x, y = left + PANEL_W * step / 4, top + PANEL_H * (1 - step / 4)
        parts += [
            f'<line x1="{left}" y1="{y:.1f}" x2="{left + PANEL_W}" y2="{y:.1f}" stroke="#e5e5e5"/>',
            f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{step / 4:.2g}</text>',
            f'<text x="{x:.1f}" y="{top + PANEL_H + 16}" text-anchor="middle">{x_max * step / 4:.3g}</text>',
        ]
    parts.append(
        f'<text x="{left + PANEL_W / 2}" y="{top + PANEL_H + 34}" text-anchor="middle">{escape(panel.x_title)}</text>'
    )
    for line in panel.lines:
        points = " ".join(
            f"{left + PANEL_W * min(1.0, x / x_max):.1f},{top + PANEL_H * (1 - y):.1f}" for x, y in line.points
        )
        parts.append(f'<polyline points="{points}" fill="none" {_stroke(labels.index(line.label))}/>')
    return parts


def _legend(labels: Sequence[str], left: float, top: float) -> list[str]:
    parts = []
    for number, label in enumerate(labels):
        y = top + 8 + number * 20
        parts += [
            f'<line x1="{left}" y1="{y}" x2="{left + 24}" y2="{y}" {_stroke(number)}/>',
            f'<text x="{left + 30}" y="{y + 4}">{escape(label)}</text>',
        ]
    return parts


def _stroke(number: int) -> str:
    dashes = ' stroke-dasharray="6 3"' if number >= len(COLOURS) else ""
    return f'stroke="{COLOURS[number % len(COLOURS)]}" stroke-width="1.8"{dashes}'
