"""One panel of a picture, as SVG text: axes, lines, and at the end of each line its name. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Final
from xml.sax.saxutils import escape

from luftpause.telemetry.printable import printable
from luftpause.testkit.bench.ink import Look

LEFT: Final = 56
"""For the figures of the upright axis, pixels like all that follows."""
RIGHT: Final = 12
TITLE_H: Final = 30
FOOT_H: Final = 48
LEADER: Final = 44
"""From the end of the axis to the names."""
SAMPLE: Final = 24
"""So much of a line, dashes and all, stands before its name."""
LABEL_H: Final = 17
LABEL_CHARS: Final = 34
CHAR_W: Final = 7.6
"""Of a name's letters in the mean, as far as fonts are known; bold ones are STRONG times as wide."""
STRONG: Final = 1.15
PLOT_H: Final = 230

_TICKS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An arm's line. Points from left to right, in the units of the axes."""

    label: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """From where to where, and which values are written beside it."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]

    def share(self, value: float) -> float:
        """Return how far along the axis a value is, 0 to 1; what lies beyond is at its end."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What a panel shows. `better`: which way is."""

    title: str
    better: str
    x: Axis
    y: Axis
    lines: Sequence[Line]

    @property
    def height(self) -> int:
        """As high as its names need to stand below each other, pixels; title and foot come on top."""
        return max(PLOT_H, LABEL_H * len(self.lines))


def round_axis(most: float) -> Axis:
    """Return an axis from nothing to at least `most`, with a few round values."""
    least_step = (most or 1.0) / _TICKS
    power = 10.0 ** floor(log10(least_step))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least_step * (1 - 1e-9))
    count = 0
    while count * step < most * (1 - 1e-9) or not count:
        count += 1
    return Axis(low=0.0, high=count * step, ticks=[(step * at, f"{step * at:g}") for at in range(count + 1)])


def drawn(panel: Panel, look_of: Mapping[str, Look], across: tuple[float, float], top: float) -> list[str]:
    """Return the marks of a panel that stands from left to right `across`, its title at the top."""
    left, end, top = across[0] + LEFT, across[1] - RIGHT, top + TITLE_H
    named = max((_width(line.label, look_of[line.label]) for line in panel.lines), default=0)
    right, bottom = end - LEADER - named, top + panel.height
    parts = [
        f'<text x="{left:.0f}" y="{top - 12:.0f}"><tspan class="strong">{escape(panel.title)}</tspan>'
        f'<tspan class="quiet"> ({escape(panel.better)})</tspan></text>'
    ]
    for value, text in panel.y.ticks:
        y = bottom - (bottom - top) * panel.y.share(value)
        parts.append(f'<line class="grid" x1="{left:.0f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="quiet" x="{left - 8:.0f}" y="{y + 5:.1f}" text-anchor="end">{escape(text)}</text>')
    for value, text in panel.x.ticks:
        x = left + (right - left) * panel.x.share(value)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom:.1f}"/>')
        parts.append(
            f'<text class="quiet" x="{x:.1f}" y="{bottom + 20:.1f}" text-anchor="middle">{escape(text)}</text>'
        )

    def placed(line: Line) -> list[tuple[float, float]]:
        return [
            (left + (right - left) * panel.x.share(x), bottom - (bottom - top) * panel.y.share(y))
            for x, y in line.points
        ]

    lines = sorted((line for line in panel.lines if line.points), key=lambda line: look_of[line.label].width)
    courses = [(line, placed(line)) for line in lines]
    heights = apart([course[-1][1] for _, course in courses], LABEL_H, (top, bottom))
    for (line, course), height in zip(courses, heights, strict=True):
        x, y = course[-1]
        parts += _line(line.label, look_of[line.label], course)
        parts.append(f'<path class="lead" d="M{x + 3:.1f} {y:.1f}L{right + 12:.1f} {height:.1f}"/>')
        parts.append(_label(line.label, look_of[line.label], right + 14, height))
    return parts


def apart(wanted: Sequence[float], gap: float, within: tuple[float, float]) -> list[float]:
    """Return places as close to the wanted ones as they can be with a gap between each two, in the same order.

    They stay within the bounds as long as there is room for all of them.
    """
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    low, high = within
    places = list(wanted)
    above = low - gap
    for number in order:
        above = places[number] = max(wanted[number], above + gap)
    below = high + gap
    for number in reversed(order):
        below = places[number] = min(places[number], below - gap)
    return places


def _line(label: str, look: Look, points: Sequence[tuple[float, float]]) -> list[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    halo = [f'<polyline class="halo" points="{path}" stroke-width="{look.width + 2:g}"/>'] if look.is_ours else []
    own = f'<polyline class="{look.kind}" points="{path}"{_stroke(look)}>'
    return [*halo, f"{own}<title>{escape(printable(label))}</title></polyline>"]


def _label(label: str, look: Look, x: float, y: float) -> str:
    """Return an arm's name with a piece of its line before it."""
    kind = look.kind if look.is_ours else "quiet"
    sample = f'<line class="{look.kind}" x1="{x:.1f}" y1="{y:.1f}" x2="{x + SAMPLE:.1f}" y2="{y:.1f}"{_stroke(look)}/>'
    return f'{sample}<text class="{kind}" x="{x + SAMPLE + 6:.1f}" y="{y + 5:.1f}">{escape(_short(label))}</text>'


def _stroke(look: Look) -> str:
    return f' stroke-width="{look.width:g}"' + (f' stroke-dasharray="{look.dash}"' if look.dash else "")


def _width(label: str, look: Look) -> float:
    return CHAR_W * len(_short(label)) * (STRONG if look.is_ours else 1.0)


def _short(label: str) -> str:
    text = printable(label)
    return text if len(text) <= LABEL_CHARS else text[: LABEL_CHARS - 1] + "…"
