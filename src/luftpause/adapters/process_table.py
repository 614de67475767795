"""What Linux tells of processes under /proc: who belongs to whom, who listens where, what they hold and how they work.

Elsewhere it knows nothing, and says so with None.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
_LISTENING: Final = "0A"
_SOCKET: Final = re.compile(r"socket:\[([0-9]+)\]")
_STATE, _PPID, _SESSION, _STARTED = 0, 1, 3, 19
_WORKED: Final = slice(11, 15)
"""Places in /proc/PID/stat after the name of the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """One process. `started` is in clock ticks since the machine was; together with the pid no other one has it."""

    pid: int
    parent: int
    session: int
    started: int


def is_known(proc: Path = PROC) -> bool:
    """Whether this machine tells of its processes here."""
    return (proc / "self" / "stat").exists()


def boot_id(proc: Path = PROC) -> str:
    """Return what names this boot of the machine; empty where it does not say."""
    try:
        return (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def row_of(pid: int, proc: Path = PROC) -> ProcessRow | None:
    """Return a process that is alive; None for one that is gone or only waits to be reaped."""
    try:
        text = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = _fields(text)
    if len(fields) <= _STARTED or fields[_STATE] in ("Z", "X"):
        return None
    return ProcessRow(pid=pid, parent=int(fields[_PPID]), session=int(fields[_SESSION]), started=int(fields[_STARTED]))


def rows(proc: Path = PROC) -> Iterator[ProcessRow]:
    """Yield every process that is alive."""
    try:
        names = os.listdir(proc)
    except OSError:
        return
    for name in names:
        if name.isdigit() and (row := row_of(int(name), proc)) is not None:
            yield row


def family_of(leader: int, proc: Path = PROC) -> frozenset[int]:
    """Return a session's leader, all others of its session, and all their descendants."""
    table = {row.pid: row for row in rows(proc)}
    family = {pid for pid, row in table.items() if pid == leader or row.session == leader}
    grows = True
    while grows:
        more = {pid for pid, row in table.items() if row.parent in family} - family
        family |= more
        grows = bool(more)
    return frozenset(family)


def listens(leader: int, port: int, proc: Path = PROC) -> bool | None:
    """Return whether a process of the leader's family listens on a TCP port; None where nobody can tell."""
    inodes = _listening_inodes(port, proc)
    if inodes is None:
        return None
    own = _sockets_of(leader, proc)
    if own is not None and inodes & own:
        return True  # as a rule; so all other processes need not be looked at
    could_look = False
    for pid in family_of(leader, proc):
        held = _sockets_of(pid, proc)
        if held is None:
            continue
        could_look = True
        if inodes & held:
            return True
    return False if could_look else None


def listener_on(port: int, proc: Path = PROC) -> int | None:
    """Return a process that listens on a TCP port; None where there is none, or none that may be looked at."""
    inodes = _listening_inodes(port, proc)
    if not inodes:
        return None
    pids = sorted(row.pid for row in rows(proc))
    return next((pid for pid in pids if inodes & (_sockets_of(pid, proc) or frozenset())), None)


def has_open(pid: int, path: Path, proc: Path = PROC) -> bool:
    """Return whether a process is seen to have a file open."""
    folder = proc / str(pid) / "fd"
    target = str(path.resolve())
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return any(_leads_to(folder / name, target) for name in names)


def command_of(pid: int, proc: Path = PROC) -> tuple[str, ...]:
    """Return the program and arguments of a process; none where they may not be seen."""
    try:
        raw = (proc / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(os.fsdecode(word) for word in raw.split(b"\0")[:-1])


def resident_bytes(leader: int, proc: Path = PROC) -> int:
    """Return the memory that a leader's family holds: shared pages counted for each, 0 where nobody can tell."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = 0
    for pid in family_of(leader, proc):
        try:
            total += int((proc / str(pid) / "statm").read_text(encoding="ascii").split()[1]) * page
        except (OSError, IndexError, ValueError):
            continue
    return total


def worked_s(leader: int, proc: Path = PROC) -> float | None:
    """Return the processor time of a leader's family and of its children that ended, seconds; None where unknown."""
    ticks = 0
    is_known = False
    for pid in family_of(leader, proc):
        try:
            fields = _fields((proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
        is_known = True
        ticks += sum(map(int, fields[_WORKED]))
    return ticks / os.sysconf("SC_CLK_TCK") if is_known else None


def environment_of(pid: int, proc: Path = PROC) -> Mapping[str, str] | None:
    """Return the variables that a process was started with; None where they may not be seen."""
    try:
        raw = (proc / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    pairs = (entry.partition(b"=") for entry in raw.split(b"\0") if entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def _listening_inodes(port: int, proc: Path) -> frozenset[str] | None:
    found: set[str] = set()
    was_read = False
    for name in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / name).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        was_read = True
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(fields[9])
    return frozenset(found) if was_read else None


def _sockets_of(pid: int, proc: Path) -> frozenset[str] | None:
    folder = proc / str(pid) / "fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return None
    found: set[str] = set()
    for name in names:
        try:
            match = _SOCKET.fullmatch(os.readlink(folder / name))
        except OSError:
            continue
        if match is not None:
            found.add(match[1])
    return frozenset(found)


def _fields(stat: str) -> list[str]:
    # The program's name may hold blanks and brackets; what follows the last bracket does not.
    return stat.rpartition(")")[2].split()


def _leads_to(link: Path, target: str) -> bool:
    try:
        return os.readlink(link) == target
    except OSError:
        return False
