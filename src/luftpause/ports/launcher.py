"""A launcher and the scheduler as they see each other: orders go one way, reports the other.

`LauncherSeat` is the launcher. `LauncherDesk` is the scheduler in its own process, `LauncherLink` what a launcher holds
of it: a call (same process) or the link on port 5000. One contract suite runs over both.
"""

from typing import Protocol, TypeAlias

from luftpause.core.model.ids import LauncherId, ModelName
from luftpause.core.scheduling.residency.actions import DropKv, LoadModel, UnloadModel
from luftpause.core.scheduling.residency.events import LauncherJoined, LoadFailed, LoadProgressed, ModelDown, ModelUp
from luftpause.ports.processes import LogSlice

ModelOrder: TypeAlias = LoadModel | UnloadModel | DropKv
"""What a launcher is told to do."""
LauncherReport: TypeAlias = LoadProgressed | ModelUp | LoadFailed | ModelDown
"""What a launcher tells of its models, in order."""


class LauncherSeat(Protocol):
    """A launcher, as the scheduler and its links hold it."""

    def inventory(self) -> LauncherJoined:
        """Return all that it can start and all that it runs now."""
        ...

    def ordered(self, order: ModelOrder) -> None:
        """Take an order. Its end is reported, where it has one."""
        ...

    async def log(self, model: ModelName, after: int) -> LogSlice:
        """Return what a model's engines wrote from a line on, as far as it is kept; nothing for unknown models."""
        ...


class LauncherDesk(Protocol):
    """The scheduler in its own process. No call waits."""

    def joined(self, seat: LauncherSeat, inventory: LauncherJoined) -> None:
        """A launcher (re)connected or has another catalogue. A seat takes the place of an older one of its name."""
        ...

    def told(self, launcher: LauncherId, report: LauncherReport) -> None:
        """A launcher reports; one that has not joined is not heard."""
        ...

    def left(self, seat: LauncherSeat) -> None:
        """The link of a launcher broke. A seat whose place another one took changes nothing."""
        ...


class LauncherLink(Protocol):
    """The scheduler as a launcher holds it."""

    def join(self, seat: LauncherSeat) -> None:
        """Take part, or tell of another catalogue. After each outage the seat is asked for its inventory again."""
        ...

    def tell(self, report: LauncherReport) -> None:
        """Report. What is told during an outage is not kept: the next inventory says it."""
        ...
