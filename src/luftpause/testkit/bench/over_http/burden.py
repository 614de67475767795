"""How busy processors were while something was measured, so that a reader sees whether they were what was measured."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from luftpause.testkit.bench.over_http.children import Child

AGENTS: Final = "agents"
_AFTER_NAME: Final = 2
_OWN_TIMES: Final = slice(13 - _AFTER_NAME, 15 - _AFTER_NAME)
"""Of the fields in /proc/PID/stat after the program's name: time in the program and in the kernel, in ticks."""


@dataclass(slots=True)
class Burden:
    """Looks at processes when it is made and when it is asked; this process is the agents.

    `parts`: processes by what they are; the busiest of a part counts. One that is no longer there counts with nothing.
    """

    parts: Mapping[str, Sequence[Child]]
    _began: float = field(default_factory=time.monotonic)
    _own: float = field(default_factory=time.process_time)
    _before: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take the first look."""
        self._before = {child.pid: processor_s(child.pid) for part in self.parts.values() for child in part}

    def cores(self) -> dict[str, float]:
        """Return how many cores each part kept busy since then, on average."""
        lasted = max(time.monotonic() - self._began, 1e-9)
        found = {AGENTS: (time.process_time() - self._own) / lasted}
        for name, children in self.parts.items():
            spent = [processor_s(child.pid) - self._before[child.pid] for child in children]
            found[name] = max([0.0, *spent]) / lasted
        return found


def processor_s(pid: int) -> float:
    """Return the processor time that a process has taken, seconds; 0 where nobody says."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0.0
    fields = text.rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[_OWN_TIMES]) / os.sysconf("SC_CLK_TCK")


def busiest(measured: Sequence[Mapping[str, float]]) -> str:
    """Return the most of each part over several measurements, for people; empty without any."""
    names = dict.fromkeys(name for cores in measured for name in cores)
    most = {name: max(cores.get(name, 0.0) for cores in measured) for name in names}
    return ", ".join(f"{name} {cores:.2f}" for name, cores in most.items())
