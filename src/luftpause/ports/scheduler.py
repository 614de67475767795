"""The scheduler as other services see it.

`SchedulerDesk` is the owner itself, in its own process and synchronous. `SchedulerLink` is what dataplanes and
launchers hold: over a call (same process) or over the link on port 5000. One contract suite runs over both.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from luftpause.core.model.ids import ModelName, PeerId, PrincipalId, ReplicaId, RunId, TurnId
from luftpause.core.model.refusals import Refusal
from luftpause.core.model.replicas import Placement, ReplicaSpec
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import PeerResynced, TurnReport

Recall: TypeAlias = Callable[[TurnId], None]
"""Takes a placed turn back from its engine, or not: TurnReturned or TurnStays is reported, unless it has ended."""


class TurnRefusedError(Exception):
    """The scheduler turned a turn away. `refusal` says why."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class LinkRefusedError(Exception):
    """The scheduler does not accept this peer's token: waiting would not help, somebody must correct the token."""


class LinkFaultError(Exception):
    """The scheduler broke on a request, or the link was closed under it."""


class Ticket:
    """An accepted turn: its run is known at once, its placement now or later.

    Args:
        run: the turn's run.
        placement: what `placement` is to be; None: a future that is made when somebody asks for it.
        parent: the run that the turn named as its parent, None where that is not known.

    Attributes:
        placed: the placement, if it came before anybody had to wait for it.
    """

    __slots__ = ("_placement", "parent", "placed", "run")

    def __init__(
        self, run: RunId, placement: asyncio.Future[Placement] | None = None, parent: RunId | None = None
    ) -> None:
        self.run = run
        self.parent = parent
        self.placed: Placement | None = None
        self._placement = placement

    @property
    def placement(self) -> asyncio.Future[Placement]:
        """Ends with a Placement, with TurnRefusedError, or stays open while the turn is held.

        Cancelling it tells nobody: the holder reports TurnAbandoned.
        """
        if self._placement is None:
            self._placement = asyncio.get_running_loop().create_future()
            if self.placed is not None:
                self._placement.set_result(self.placed)
        return self._placement

    @property
    def is_settled(self) -> bool:
        """Whether it has ended."""
        return self.placed is not None or (self._placement is not None and self._placement.done())

    def place(self, placement: Placement) -> None:
        """Let it end with a placement."""
        if self._placement is None:
            self.placed = placement
        else:
            self._placement.set_result(placement)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSeen:
    """A service that holds the scheduler over the link; while it is not connected, its turns have their grace."""

    peer: PeerId
    is_connected: bool


class SchedulerDesk(Protocol):
    """The scheduler in its own process. Every call returns at once; none of them blocks or awaits."""

    def admit(self, offer: TurnOffer) -> Ticket:
        """Resolve or mint the run and queue the turn. A turn id seen before gets its old ticket's placement.

        Raises:
            TurnRefusedError: refused at once, for example an unknown model.
        """
        ...

    def lacks_word(self, offer: TurnOffer) -> bool:
        """Say whether an offer shows signs of a run, and of none that it can be a turn of by now.

        Another peer's report may be about to tell of it.
        """
        ...

    def report(self, report: TurnReport) -> None:
        """Take in what a dataplane saw; reports about unknown turns change nothing."""
        ...

    def attend(self, peer: PeerId, recall: Recall) -> None:
        """Recall the turns of a peer by this from now on, until the peer is lost. Without it none is recalled."""
        ...

    def end_run(self, principal: PrincipalId, run: RunId) -> bool:
        """Forget a run. False when the principal has no such run."""
        ...

    def models(self) -> Sequence[ModelName]:
        """All models that some declared replica serves, sorted, without repeats."""
        ...

    def resync(self, report: PeerResynced) -> None:
        """Take in all that a reconnecting dataplane knows, before it admits anything again."""
        ...

    def peer_lost(self, peer: PeerId) -> None:
        """A dataplane stayed away longer than the grace."""
        ...

    def add_replica(self, spec: ReplicaSpec) -> None:
        """Declare a replica; the same id again replaces the declaration."""
        ...

    def remove_replica(self, replica: ReplicaId) -> None:
        """Take a replica away; unknown ids change nothing."""
        ...


class SchedulerLink(Protocol):
    """The scheduler as a dataplane or launcher holds it, in process or over the link.

    Over the link every coroutine waits while the scheduler is out of reach, and may raise LinkRefusedError (wrong
    token) and, but for `admit`, LinkFaultError.
    """

    async def admit(self, offer: TurnOffer) -> Ticket:
        """Return once the scheduler accepted the turn; while it is out of reach the turn waits here.

        Raises:
            TurnRefusedError: refused at once.
        """
        ...

    def report(self, report: TurnReport) -> None:
        """Send a report, in order, without waiting."""
        ...

    def attend(self, peer: PeerId, recall: Recall) -> None:
        """Recall turns of this peer, whose offers pass here, by this from now on."""
        ...

    async def end_run(self, principal: PrincipalId, run: RunId) -> bool:
        """Forget a run. False when the principal has no such run."""
        ...

    async def models(self) -> Sequence[ModelName]:
        """All models that some declared replica serves, sorted, without repeats."""
        ...

    async def add_replica(self, spec: ReplicaSpec) -> None:
        """Declare a replica."""
        ...

    async def remove_replica(self, replica: ReplicaId) -> None:
        """Take a replica away."""
        ...
