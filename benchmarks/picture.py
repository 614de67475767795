"""The picture at the top of the README, from a stored result: what a flood leaves to interactive runs, arm by arm."""

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from luftpause.testkit.bench.ink import STYLE
from luftpause.testkit.bench.results import ArmResult, WorkloadResult
from luftpause.testkit.bench.tables import ratio_of
from luftpause.testkit.bench.workloads import TUNED
from luftpause.testkit.sim.figures import Spread, spread_of

NAMES: Final = {
    "direct": "round robin",
    "sglang-router-tuned": "sglang-router, tuned",
    "vllm-router": "vllm-router",
    "smg": "smg, with priorities",
    "turn-admission": "luftpause, turn-admission",
    "working-set": "luftpause, working-set",
}
"""The arms that are shown, in this order, as people call them."""

KINDS: Final = {"turn-admission": "second", "working-set": "first"}
"""How ours look; others are quiet."""

GROUPS: Final = (("interactive", "interactive_runs_per_min"), ("batch", "batch_runs_per_min"))
WIDTH: Final = 880
ROW_H: Final = 28
TOP: Final = 44
BARS_X: Final = 225
BARS_W: Final = 200
GROUP_W: Final = 340


def picture(result: WorkloadResult) -> str:
    """Return SVG: for each arm a bar of interactive and one of batch runs a minute, and × the tuned router.

    Bars are medians over the seeds, lines on them the least and the greatest seed. Each group has its own scale, from
    nothing to the best arm.
    """
    arms = [arm for name in NAMES for arm in result.arms if arm.arm == name]
    height = TOP + ROW_H * len(arms) + 34
    told = "; ".join(
        f"{NAMES[arm.arm]} {' and '.join(f'{_of(arm, figure).median or 0:.0f}' for _, figure in GROUPS)}"
        for arm in arms
    )
    source = (
        f"more is better; × is to {NAMES[TUNED]}; medians of {len(result.seeds)} seeds, least to greatest; "
        f"engine model, commit {result.commit}"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-labelledby="told">',
        f'<title id="told">Interactive and batch runs a minute under a flood: {escape(told)}.</title>',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
    ]
    for row, arm in enumerate(arms):
        kind = KINDS.get(arm.arm, "")
        y = TOP + ROW_H * row + 15
        parts.append(
            f'<text class="{kind}" x="{BARS_X - 12}" y="{y}" text-anchor="end">{escape(NAMES[arm.arm])}</text>'
        )
    for column, (name, figure) in enumerate(GROUPS):
        parts += _group(BARS_X + column * GROUP_W, name, figure, arms)
    parts.append(f'<text class="quiet" x="16" y="{height - 12}">{escape(source)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _group(x: int, name: str, figure: str, arms: Sequence[ArmResult]) -> list[str]:
    found = {arm.arm: _of(arm, figure) for arm in arms}
    most = max((spread.high or 0.0 for spread in found.values()), default=0.0) or 1.0
    parts = [f'<text class="strong" x="{x}" y="26">{name} runs a minute</text>']
    for row, (arm, spread) in enumerate(found.items()):
        width, low, high = (BARS_W * (value or 0.0) / most for value in (spread.median, spread.low, spread.high))
        kind, y = KINDS.get(arm, ""), TOP + row * ROW_H
        ratio = None if arm == TUNED or TUNED not in found else ratio_of(spread, found[TUNED])
        text = f"{spread.median or 0.0:.0f}" + (f" · {ratio:.2f}×" if ratio is not None else "")
        parts += [
            f'<rect class="{kind or "bar"}" x="{x}" y="{y}" width="{width:.1f}" height="20" rx="3"/>',
            f'<line class="whisker" x1="{x + low:.1f}" y1="{y + 10}" x2="{x + high:.1f}" y2="{y + 10}"/>',
            f'<text class="{kind}" x="{x + high + 8:.1f}" y="{y + 15}">{text}</text>',
        ]
    return parts


def _of(arm: ArmResult, figure: str) -> Spread:
    return arm.figures.get(figure) or spread_of([])
