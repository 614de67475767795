"""What the looks found, for people and for machines. Names come from elsewhere: none is printed as it came."""

from collections import Counter
from collections.abc import Sequence

import msgspec
from rich.text import Text

import luftpause
from luftpause.cli.examining.findings import Finding, Grade
from luftpause.telemetry.printable import printable

_STYLES = {Grade.OK: "green", Grade.NOTE: "dim", Grade.WARNING: "yellow", Grade.ERROR: "bold red"}
_GRADE_WIDTH = max(len(grade.value) for grade in Grade)


def as_json(findings: Sequence[Finding]) -> bytes:
    """Return one JSON object: `ok` is false where something does not work."""
    return msgspec.json.encode(
        {
            "version": luftpause.__version__,
            "ok": all(each.grade is not Grade.ERROR for each in findings),
            "findings": [
                {"check": each.check, "grade": each.grade.value, "seen": each.seen, "mend": each.mend or None}
                for each in findings
            ],
        }
    )


def as_text(findings: Sequence[Finding]) -> Text:
    """Return a line for each finding, what mends it below, and at the end how many there are of what is wrong.

    Lines are as long as they are, so that a command can be copied.
    """
    width = max((len(each.check) for each in findings), default=0)
    text = Text()
    last = ""
    for each in findings:
        text.append(f"{'' if each.check == last else each.check:<{width}}  ")
        last = each.check
        text.append(f"{each.grade.value:<{_GRADE_WIDTH}}  ", _STYLES[each.grade])
        text.append(f"{printable(each.seen)}\n")
        if each.mend:
            text.append(f"{'':<{width + _GRADE_WIDTH + 4}}-> {printable(each.mend)}\n", "cyan")
    return text.append(f"\n{_sum(findings)}")


def _sum(findings: Sequence[Finding]) -> str:
    counts = Counter(each.grade for each in findings)
    wrong = [_counted(counts[grade], grade.value) for grade in (Grade.ERROR, Grade.WARNING) if counts[grade]]
    return ", ".join(wrong) or "nothing is wrong"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"
