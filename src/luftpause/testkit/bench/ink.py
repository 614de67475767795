"""What pictures are drawn with: colours by day and by night, and how the line of each arm looks. Decides nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from luftpause.testkit.bench.results import AT

GROUNDS: Final = ("#ffffff", "#0d1117")
"""What everything stands on, by day and by night."""

_TEXT: Final = ("#1f2328", "#f0f6fc")
_QUIET: Final = ("#59636e", "#9198a1")
_GRID: Final = ("#d8dee4", "#2b323b")
_BAR: Final = ("#b6bfc9", "#59636e")

FIRST: Final = ("#0550ae", "#58a6ff")
SECOND: Final = ("#bc4c00", "#f0883e")
PEERS: Final = ("#7a828c", "#8f7ab8", "#5f8f86", "#a5774a", "#b5708e")
"""Of others: seen by day and by night alike, and quieter than ours."""

DASHES: Final = ("", "7 3", "2 3", "9 3 2 3")
"""As many as have no common factor with the colours, so twenty arms differ; and they differ without their colours."""

_EMPHASIS: Final = {"working-set": ("first", 3.5), "turn-admission": ("second", 2.6)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How a line and its label look. `kind` is a class of STYLE, `width` in pixels; ours are drawn over others."""

    kind: str
    width: float
    dash: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether it is to be seen before all others."""
        return self.kind in ("first", "second")


def looks(arms: Sequence[str]) -> dict[str, Look]:
    """Return how each arm looks, different ones as different as can be; `arm@commit` looks like its arm, but dashed."""
    found: dict[str, Look] = {}
    others = revisions = 0
    for arm in dict.fromkeys(arms):
        policy, _, commit = arm.partition(AT)
        if policy not in _EMPHASIS:
            found[arm] = Look(kind=f"peer{others % len(PEERS)}", width=1.7, dash=DASHES[others % len(DASHES)])
            others += 1
            continue
        kind, width = _EMPHASIS[policy]
        if not commit:
            found[arm] = Look(kind=kind, width=width)
            continue
        found[arm] = Look(kind=kind, width=2.0, dash=DASHES[1 + revisions % (len(DASHES) - 1)])
        revisions += 1
    return found


def _css(night: int) -> str:
    rules = [
        f".ground{{fill:{GROUNDS[night]}}}",
        f"text{{fill:{_TEXT[night]}}}",
        f".quiet{{fill:{_QUIET[night]}}}",
        f".grid,.lead{{fill:none;stroke:{_GRID[night]}}}",
        f".halo{{stroke:{GROUNDS[night]}}}",
        f".bar{{fill:{_BAR[night]}}}.whisker{{stroke:{_TEXT[night]};stroke-opacity:.55}}",
    ]
    for kind, colours in (("first", FIRST), ("second", SECOND)):
        rules.append(f"line.{kind},polyline.{kind}{{stroke:{colours[night]}}}")
        rules.append(f"text.{kind},rect.{kind}{{fill:{colours[night]}}}")
    return "".join(rules)


STYLE: Final = "".join(
    [
        "text{font:14px system-ui,-apple-system,'Segoe UI',sans-serif}",
        ".strong,text.first,text.second{font-weight:600}polyline,line{fill:none;stroke-linejoin:round}",
        _css(0),
        *(f".peer{number}{{stroke:{colour}}}" for number, colour in enumerate(PEERS)),
        f"@media (prefers-color-scheme:dark){{{_css(1)}}}",
    ]
)
"""The style of a picture; a reader's browser says whether it is day or night."""
