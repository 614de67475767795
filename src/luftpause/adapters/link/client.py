"""The scheduler held over TCP: a `SchedulerLink` that outlives connections and restarts of the scheduler.

While the scheduler is out of reach, calls wait and reports are kept. How a connection comes about is `dialer`'s, what
is said when one stands again is `upkeep`'s.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence

from luftpause.adapters.link.codec import to_bytes, told_frame
from luftpause.adapters.link.dialer import Dialer
from luftpause.adapters.link.frames import (
    LINK_PROTOCOL,
    AddReplica,
    Answer,
    Done,
    EndRun,
    Goodbye,
    Hello,
    ListModels,
    Models,
    RemoveReplica,
    RunGone,
)
from luftpause.adapters.link.upkeep import Upkeep
from luftpause.adapters.link.wire import CLOSE_S
from luftpause.core.model.ids import ModelName, PeerId, PrincipalId, ReplicaId, RunId
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.model.replicas import ReplicaSpec
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import TurnAbandoned, TurnReport
from luftpause.ports.launcher import LauncherReport, LauncherSeat
from luftpause.ports.scheduler import LinkFaultError, Recall, Ticket, TurnRefusedError

_log = logging.getLogger("luftpause.link")


class RemoteLink:
    """The scheduler at `host:port`, held by the peer `peer`, whose offers it takes.

    `retry_s` is the longest pause before dialling again; runs that were idle for longer than `run_idle_s` are not told
    to a scheduler that was started anew.

    Nothing is said before `start`. A wrong token fails every call that waits, and every later one until the
    scheduler accepts it, with LinkRefusedError; the link keeps trying.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        peer: PeerId,
        token: str = "",
        retry_s: float = 0.5,
        run_idle_s: float = 1800.0,
    ) -> None:
        self._upkeep = Upkeep(peer, run_idle_s=run_idle_s)
        hello = Hello(LINK_PROTOCOL, peer, token)
        self._dialer = Dialer(host, port, hello=hello, owner=self._upkeep, retry_s=retry_s)
        self._dialling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to connect; returns at once, whether or not the scheduler is up."""
        assert self._dialling is None, "a link is started once"
        self._dialling = asyncio.create_task(self._dialer.run(), name="luftpause-link")
        self._dialling.add_done_callback(_log_death)

    async def ready(self) -> None:
        """Return once the scheduler has welcomed us.

        Raises:
            LinkRefusedError: it does not accept our token.
            LinkFaultError: the link was closed.
        """
        while not self._upkeep.is_up:
            self._upkeep.check()
            self._upkeep.changed.clear()
            await self._upkeep.changed.wait()

    async def close(self) -> None:
        """Say goodbye and stop: our turns end at once over there. Whoever still waits here is turned away."""
        self._upkeep.closed = True
        self._upkeep.changed.set()
        self._upkeep.close()
        dialling, self._dialling = self._dialling, None
        if dialling is None:
            return
        self._dialer.leave()
        if self._upkeep.is_up:
            # The scheduler closes: were we to do it with its frames unread, it would lose our last reports.
            self._upkeep.say(to_bytes(Goodbye()))
            await asyncio.wait({dialling}, timeout=CLOSE_S)
        dialling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await dialling

    async def admit(self, offer: TurnOffer) -> Ticket:
        """See SchedulerLink. Cancelling it withdraws the turn, unless another caller waits for the same turn id.

        Raises:
            TurnRefusedError: refused, or the offer does not fit a frame.
            LinkRefusedError: the scheduler does not accept our token.
            ValueError: the offer is another peer's.
        """
        if offer.peer != self._upkeep.peer:
            raise ValueError(f"this link is {self._upkeep.peer!r}'s, the offer {offer.peer!r}'s")
        if self._upkeep.closed:
            raise TurnRefusedError(Refusal(reason=RefusalReason.SHUTTING_DOWN, message="shutting down"))
        self._upkeep.check()
        admission = self._upkeep.admissions.get(offer.turn) or self._upkeep.offer(offer)
        if isinstance(admission, Refusal):
            raise TurnRefusedError(admission)
        admission.holders += 1
        try:
            run, parent = await asyncio.shield(admission.accepted)
        except asyncio.CancelledError:
            admission.holders -= 1
            if admission.holders == 0 and self._upkeep.admissions.get(offer.turn) is admission:
                self._upkeep.report(TurnAbandoned(turn=offer.turn))
            raise
        return Ticket(run, admission.placement, parent)

    def report(self, report: TurnReport) -> None:
        """See SchedulerLink."""
        self._upkeep.report(report)

    def attend(self, peer: PeerId, recall: Recall) -> None:
        """See SchedulerLink. The scheduler recalls by name, and finds us on whichever connection we have."""
        if peer != self._upkeep.peer:
            raise ValueError(f"this link is {self._upkeep.peer!r}'s, not {peer!r}'s")
        self._upkeep.recall = recall

    async def end_run(self, principal: PrincipalId, run: RunId) -> bool:
        """See SchedulerLink. The ledger keeps the run until the answer is here, so that asking again finds it."""
        answer = await self._upkeep.ask(lambda request: EndRun(request, principal, run))
        if not isinstance(answer, RunGone):
            raise _unexpected(answer)
        if answer.ended:
            self._upkeep.ledger.run_ended(run)
        return answer.ended

    async def models(self) -> Sequence[ModelName]:
        """See SchedulerLink."""
        answer = await self._upkeep.ask(ListModels)
        if not isinstance(answer, Models):
            raise _unexpected(answer)
        return answer.models

    async def add_replica(self, spec: ReplicaSpec) -> None:
        """See SchedulerLink. A scheduler that is started anew is told again."""
        answer = await self._upkeep.ask(lambda request: AddReplica(request, spec))
        if not isinstance(answer, Done):
            raise _unexpected(answer)
        self._upkeep.ledger.declared(spec)

    def join(self, seat: LauncherSeat) -> None:
        """See LauncherLink."""
        self._upkeep.join(seat)

    def tell(self, report: LauncherReport) -> None:
        """See LauncherLink."""
        self._upkeep.say(to_bytes(told_frame(report)))

    async def remove_replica(self, replica: ReplicaId) -> None:
        """See SchedulerLink."""
        answer = await self._upkeep.ask(lambda request: RemoveReplica(request, replica))
        if not isinstance(answer, Done):
            raise _unexpected(answer)
        self._upkeep.ledger.removed(replica)


def _unexpected(answer: Answer) -> LinkFaultError:
    return LinkFaultError(f"the scheduler answered with {type(answer).__name__}")


def _log_death(dialling: asyncio.Task[None]) -> None:
    if not dialling.cancelled() and (error := dialling.exception()) is not None:
        _log.critical("link_task_died", exc_info=error)
