"""The picture at the top of the README, from a stored result: what a flood leaves to interactive runs, arm by arm."""

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from luftpause.testkit.bench.results import ArmResult, WorkloadResult

NAMES: Final = {
    "direct": "round robin",
    "sglang-router-tuned": "sglang-router, tuned",
    "vllm-router": "vllm-router",
    "smg": "smg, with priorities",
    "turn-admission": "luftpause, turn-admission",
    "working-set": "luftpause, working-set",
}
"""The arms that are shown, in this order, as people call them."""

GROUPS: Final = (("interactive", "interactive_runs_per_min"), ("batch", "batch_runs_per_min"))
WIDTH: Final = 760
ROW_H: Final = 24
BARS_X: Final = 190
BARS_W: Final = 215
GROUP_W: Final = 290

STYLE: Final = """text{font:13px system-ui,sans-serif;fill:#1f2328}.quiet{fill:#59636e}.bar{fill:#b6bfc9}
.ours{fill:#0969da}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.quiet{fill:#9198a1}.bar{fill:#59636e}.ours{fill:#4493f8}}"""


def picture(result: WorkloadResult) -> str:
    """Return SVG: for each arm a bar of interactive and one of batch runs a minute, medians over the seeds.

    Each group has its own scale, from nothing to the best arm.
    """
    arms = [arm for name in NAMES for arm in result.arms if arm.arm == name]
    height = 78 + ROW_H * len(arms)
    told = "; ".join(
        f"{NAMES[arm.arm]} {_median(arm, GROUPS[0][1]):.0f} and {_median(arm, GROUPS[1][1]):.0f}" for arm in arms
    )
    source = f"engine model, medians of {len(result.seeds)} seeds, commit {result.commit}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-labelledby="told">',
        f'<title id="told">Interactive and batch runs a minute under a flood: {escape(told)}.</title>',
        f"<style>{STYLE}</style>",
    ]
    for row, arm in enumerate(arms):
        parts.append(
            f'<text x="{BARS_X - 10}" y="{49 + row * ROW_H}" text-anchor="end">{escape(NAMES[arm.arm])}</text>'
        )
    for column, (name, figure) in enumerate(GROUPS):
        parts += _group(BARS_X + column * GROUP_W, name, figure, arms)
    parts.append(f'<text class="quiet" x="{BARS_X}" y="{height - 12}">{escape(source)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _group(x: int, name: str, figure: str, arms: Sequence[ArmResult]) -> list[str]:
    most = max((_median(arm, figure) for arm in arms), default=1.0) or 1.0
    parts = [f'<text class="quiet" x="{x}" y="22">{name} runs a minute</text>']
    for row, arm in enumerate(arms):
        value = _median(arm, figure)
        width = BARS_W * value / most
        kind = "ours" if NAMES[arm.arm].startswith("luftpause") else "bar"
        y = 36 + row * ROW_H
        parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width:.1f}" height="16" rx="3"/>')
        parts.append(f'<text x="{x + width + 6:.1f}" y="{y + 13}">{value:.0f}</text>')
    return parts


def _median(arm: ArmResult, figure: str) -> float:
    found = arm.figures.get(figure)
    return (found and found.median) or 0.0
