"""What a look can say: how grave it is, what was seen, and what mends it."""

from dataclasses import dataclass
from enum import Enum


class Grade(Enum):
    """How grave a finding is. Only an error makes the exit code 1."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line.

    Attributes:
        check: which look it is of.
        seen: what was seen, in one line.
        mend: the very command or configuration line that mends it; empty where nothing has to be mended.
    """

    check: str
    grade: Grade
    seen: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Says:
    """Makes the findings of one look."""

    check: str

    def ok(self, seen: str) -> Finding:
        """Return that all is well."""
        return Finding(check=self.check, grade=Grade.OK, seen=seen)

    def note(self, seen: str, mend: str = "") -> Finding:
        """Return something worth knowing."""
        return Finding(check=self.check, grade=Grade.NOTE, seen=seen, mend=mend)

    def warning(self, seen: str, mend: str) -> Finding:
        """Return what works, but not as well as it could."""
        return Finding(check=self.check, grade=Grade.WARNING, seen=seen, mend=mend)

    def error(self, seen: str, mend: str) -> Finding:
        """Return what does not work."""
        return Finding(check=self.check, grade=Grade.ERROR, seen=seen, mend=mend)
