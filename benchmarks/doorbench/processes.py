"""What the kernel says of a peer: CPU, memory and socket queues of its process tree; and how a module of ours is run.

On Linux from /proc. Elsewhere there is no cheap way to ask about another live process, so every figure is None and the
report says n/a.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStat:
    """The fields of /proc/PID/stat that matter here; times are clock ticks."""

    pid: int
    parent: int
    own_ticks: int
    reaped_ticks: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse one /proc/PID/stat line; the command's name may hold spaces and parentheses.

        Raises:
            ValueError: the text is no such line.
        """
        pid, _, rest = text.partition(" (")
        _, closed, after = rest.rpartition(") ")
        fields = after.split()
        if not closed or len(fields) < 15:
            raise ValueError(f"not a stat line: {text[:80]!r}")
        return cls(
            pid=int(pid),
            parent=int(fields[1]),
            own_ticks=int(fields[11]) + int(fields[12]),
            reaped_ticks=int(fields[13]) + int(fields[14]),
        )


def descendants(stats: Sequence[ProcessStat], root: int) -> list[ProcessStat]:
    """Return the root and everything below it, parents before children."""
    found = [stat for stat in stats if stat.pid == root]
    for parent in found:
        found.extend(stat for stat in stats if stat.parent == parent.pid and stat.pid != parent.pid)
    return found


def _all_stats() -> list[ProcessStat]:
    stats = []
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                stats.append(ProcessStat.parse((entry / "stat").read_text(encoding="utf-8", errors="replace")))
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended while we looked
    return stats


def cpu_s(root: int) -> float | None:
    """Return user + system seconds of a process, its living descendants and the children they have reaped."""
    if not (PROC / str(root) / "stat").exists():
        return None
    tree = descendants(_all_stats(), root)
    return sum(stat.own_ticks + stat.reaped_ticks for stat in tree) / os.sysconf("SC_CLK_TCK")


def resident_bytes(root: int) -> int | None:
    """Return the resident memory of a process and its living descendants."""
    if not (PROC / str(root) / "statm").exists():
        return None
    pages = 0
    for stat in descendants(_all_stats(), root):
        pages += int((PROC / str(stat.pid) / "statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def parse_queues(table: str, ports: frozenset[int]) -> int:
    """Return the bytes queued in the kernel (both directions) on established sockets that touch one of the ports.

    Args:
        table: the text of /proc/net/tcp.
        ports: local or remote ports.
    """
    total = 0
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 5 or fields[3] == "0A":  # a listener's queue counts connections
            continue
        touched = {int(end.rpartition(":")[2], 16) for end in fields[1:3]}
        if touched & ports:
            send, _, receive = fields[4].partition(":")
            total += int(send, 16) + int(receive, 16)
    return total


def queued_bytes(ports: frozenset[int]) -> int | None:
    """Return `parse_queues` of this machine now, or None where there is no such table."""
    table = PROC / "net" / "tcp"
    return parse_queues(table.read_text(encoding="ascii"), ports) if table.exists() else None


def python_module(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module of this benchmark with this interpreter."""
    return [sys.executable, "-m", module, *arguments]
