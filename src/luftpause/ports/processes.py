"""How the launcher starts, watches and ends processes, and how it learns to start an engine of this machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from luftpause.core.model.ids import DeviceId
from luftpause.core.processes.actions import StopSignal


class CouldNotStartError(Exception):
    """No process came to be: the program is missing, may not be run, or its port is taken (`port_taken`)."""

    def __init__(self, message: str, *, port_taken: bool = False) -> None:
        super().__init__(message)
        self.port_taken = port_taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One process to start. No shell reads any of it.

    Attributes:
        name: what its log is called; unique among the processes that run.
        port: where it will listen; it is refused when somebody else listens there. 0: do not look.
        host: the address that it listens on.
        env: variables added to the few that every child gets.
    """

    name: str
    argv: tuple[str, ...]
    port: int = 0
    host: str = "127.0.0.1"
    env: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnd:
    """How a process ended.

    Attributes:
        code: negative for a signal; None where only the launcher that started it could have been told.
        tail: the end of what it wrote, oldest line first.
    """

    code: int | None
    tail: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSlice:
    """Lines that processes of one name wrote, oldest first; `next` is the number of the line after them."""

    lines: tuple[str, ...]
    next: int


class RunningProcess(Protocol):
    """A process that was started, with the group of all its children."""

    @property
    def pid(self) -> int:
        """Its id, and that of its group."""
        ...

    @property
    def alive(self) -> bool:
        """Whether the process itself has not ended yet."""
        ...

    def tail(self) -> tuple[str, ...]:
        """Return the last lines that it wrote so far, oldest first."""
        ...

    def listens_on(self, port: int) -> bool | None:
        """Return whether it, or a child of it, is who listens on the port; None where nobody can tell."""
        ...

    def worked_s(self) -> float | None:
        """Return the processor time that it and its children have taken, seconds; None where nobody can tell.

        Takes milliseconds.
        """
        ...

    def signal(self, signal: StopSignal) -> None:
        """Signal the whole group. Nothing happens when all of it is gone."""
        ...

    async def ended(self) -> ProcessEnd:
        """Return once the process has ended, and with it every child that it left behind."""
        ...


class LeftBehind(Protocol):
    """A process that a launcher before us started and did not end."""

    @property
    def name(self) -> str:
        """As its `Launch` named it."""
        ...

    @property
    def port(self) -> int:
        """Where it was told to listen; 0: nowhere."""
        ...

    def is_of(self, launch: Launch) -> bool:
        """Return whether it is the very process that a launch would start now, to the last word and variable."""
        ...

    def listens(self) -> bool | None:
        """Return whether it, or a child of it, listens on its port; None where nobody can tell. Takes milliseconds."""
        ...

    def adopt(self) -> RunningProcess:
        """Return it as our own. It may have ended meanwhile, as any process may."""
        ...


class ProcessHost(Protocol):
    """The machine that processes run on."""

    def left_behind(self) -> Sequence[LeftBehind]:
        """Return what launchers that are gone left; from now on it is ours. Blocks for milliseconds."""
        ...

    def end_left_behind(self, grace_s: float) -> None:
        """End all of that which was not adopted. Blocks until it is gone, for the grace at most, and a bit."""
        ...

    def free_port(self, host: str) -> int:
        """Return a port at an address of this machine that nobody listens on now."""
        ...

    def lines(self, name: str, after: int) -> LogSlice:
        """Return what processes of a name wrote from a line on; whatever their number, as far as it is kept."""
        ...

    def start(self, launch: Launch) -> RunningProcess:
        """Start a process in a group of its own, without waiting for anything.

        Raises:
            CouldNotStartError: there is no such process; the message says why.
        """
        ...


class MemoryMeter(Protocol):
    """What engines take of the machine's memories. Calls may take milliseconds: make them in a thread."""

    def taken(self, pid: int, device: DeviceId) -> int:
        """Return what a process and all its children hold on a device, bytes; 0 where nobody can tell."""
        ...

    def free(self, device: DeviceId) -> int | None:
        """Return what is free on a device, bytes; None where nobody can tell, and for RAM: it ends with its process."""
        ...


class LocalEngine(Protocol):
    """An engine program that this machine has."""

    @property
    def env(self) -> Mapping[str, str]:
        """Variables that it needs."""
        ...

    def command(self, *, model: Path, host: str, port: str, alias: str, args: Sequence[str]) -> tuple[str, ...]:
        """Return program and arguments. `port` may be a placeholder; `args` come last."""
        ...
