"""What is true of a client's link across connections, and what is said when one stands again.

The order on every connect: declared replicas (only to a scheduler that was started anew), resync, unconfirmed
reports, unanswered requests, a launcher's inventory, held turns under the run that they were promised. It does not
know how a connection comes about.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Final, assert_never

from luftpause.adapters.link.admissions import Admission, Admissions
from luftpause.adapters.link.codec import FRAME_BYTES_MAX, FrameError, order_in, to_bytes
from luftpause.adapters.link.frames import (
    Accepted,
    Acknowledged,
    AddReplica,
    Admit,
    Answer,
    AskLog,
    Done,
    Failed,
    Fault,
    Joined,
    LogLines,
    Models,
    Ordered,
    Placed,
    Recalled,
    Refused,
    Request,
    RunGone,
    ServerFrame,
    Welcome,
)
from luftpause.adapters.link.ledger import Ledger
from luftpause.adapters.link.outbox import Outbox
from luftpause.adapters.link.requests import Requests
from luftpause.adapters.link.resync import resync_frames
from luftpause.adapters.link.wire import Wire
from luftpause.core.model.ids import Instant, PeerId, TurnId
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import (
    TurnAbandoned,
    TurnFailed,
    TurnFinished,
    TurnReport,
    TurnReturned,
    TurnsRenewed,
)
from luftpause.ports.launcher import LauncherSeat
from luftpause.ports.scheduler import LinkFaultError, LinkRefusedError, Recall

_RUN_ROOM: Final = 16 * 1024
"""Bytes kept free in a first offer: offered again, it also carries the run that it was promised."""

_log = logging.getLogger("luftpause.link")


class Upkeep:
    """One peer's side of the link. `changed` is set whenever the link goes up or its state changes for a waiter."""

    def __init__(self, peer: PeerId, *, run_idle_s: float) -> None:
        self.peer = peer
        self.ledger = Ledger(peer, run_idle_s=run_idle_s)
        self.admissions = Admissions()
        self.changed = asyncio.Event()
        self.closed = False
        self._outbox = Outbox()
        self._requests = Requests()
        self._wire: Wire | None = None
        self._instance = ""
        self._refused = ""
        self._seat: LauncherSeat | None = None
        self.recall: Recall | None = None
        self._answering: set[asyncio.Task[None]] = set()

    @property
    def is_up(self) -> bool:
        """Whether the scheduler has welcomed us."""
        return self._wire is not None

    def check(self) -> None:
        """Raise when waiting for the scheduler would be in vain.

        Raises:
            LinkFaultError: the link was closed.
            LinkRefusedError: the scheduler does not accept our token.
        """
        if self.closed:
            raise LinkFaultError("the link is closed")
        if self._refused:
            raise LinkRefusedError(self._refused)

    def offer(self, offer: TurnOffer) -> Admission | Refusal:
        """Begin a turn's admission; the refusal says that the offer does not fit a frame."""
        frame = _admit(offer, FRAME_BYTES_MAX - _RUN_ROOM)
        if isinstance(frame, Refusal):
            return frame
        self.ledger.offered(offer, _now())
        self.say(frame)
        return self.admissions.open(offer.turn)

    def report(self, report: TurnReport) -> None:
        """Send a report, and keep it if a scheduler must still hear of it after an outage."""
        if isinstance(report, TurnsRenewed):
            if self._wire is not None:  # after an outage the resync is the sign of life
                self._wire.send(self._outbox.put_renewed(report))
            return
        # A turn without a place needs no report after an outage: the resync does not name it, so it is over.
        self.say(self._outbox.put(report, _now(), keep=self.ledger.is_placed(report.turn)))
        if isinstance(report, TurnFinished | TurnFailed | TurnAbandoned | TurnReturned):
            self.ledger.withdrawn(report.turn)
            self.admissions.end(report.turn)
            if self._wire is not None:  # before the client sees the end: its next turn may come by another dataplane
                self._wire.flush()
        self._confirmed(0)  # nothing, unless the outbox is full

    async def ask(self, build: Callable[[int], Request]) -> Answer:
        """Ask, as often as it takes, and return the answer.

        Raises:
            LinkFaultError: the scheduler broke on it, it does not fit a frame, or the link was closed.
            LinkRefusedError: the scheduler does not accept our token.
        """
        self.check()
        frame, answer = self._requests.ask(build)
        self.say(frame)
        return await answer

    def say(self, frame: bytes) -> None:
        """Send a frame if the link is up; what must survive an outage is said again by `link_up`."""
        if self._wire is not None:
            self._wire.send(frame)

    def join(self, seat: LauncherSeat) -> None:
        """Tell that we have a launcher, and what it has; told again on each connection."""
        self._seat = seat
        self.say(to_bytes(Joined(seat.inventory())))

    def close(self) -> None:
        """Turn away whoever still waits."""
        for turn in self.admissions.turns():
            self.admissions.refuse(turn, Refusal(reason=RefusalReason.SHUTTING_DOWN, message="shutting down"))
        self._requests.fail(LinkFaultError("the link is closed"))

    def link_up(self, wire: Wire, instance: str) -> None:
        """See DialerOwner."""
        self._wire = wire
        self._refused = ""
        self.changed.set()
        is_returning = self._instance not in ("", instance)
        for frame in self._catch_up(started_anew=instance != self._instance, is_returning=is_returning):
            wire.send(frame)
        self._instance = instance

    def link_down(self) -> None:
        """See DialerOwner."""
        self._wire = None

    def token_refused(self, message: str) -> None:
        """See DialerOwner. Tickets handed out stay open: they end when the token is right again."""
        self._refused = message
        self.changed.set()
        for turn in self.admissions.unaccepted():
            self.ledger.withdrawn(turn)
            self.admissions.fail(turn, LinkRefusedError(message))
        self._requests.fail(LinkRefusedError(message))

    def frame_received(self, frame: ServerFrame) -> None:
        """See DialerOwner."""
        match frame:
            case Accepted() | Placed() | Recalled() | Refused():
                self._heard_of_turn(frame)
            case Acknowledged(seq=seq):
                self._confirmed(seq)
            case RunGone() | Models() | Done() | Failed():
                self._requests.answered(frame)
            case Ordered():
                if self._seat is not None:
                    self._seat.ordered(order_in(frame))
            case AskLog():
                answering = asyncio.create_task(self._answer_log(frame))
                self._answering.add(answering)
                answering.add_done_callback(self._answering.discard)
            case Welcome() | Fault():
                pass  # the dialer's
            case _:
                assert_never(frame)

    def _heard_of_turn(self, frame: Accepted | Placed | Recalled | Refused) -> None:
        match frame:
            case Accepted(turn=turn, run=run, parent=parent):
                self.ledger.accepted(turn, run, parent)
                self.admissions.accept(turn, run, parent)
            case Placed(turn=turn, placement=placement):
                self.ledger.placed(turn, placement, _now())
                self.admissions.place(turn, placement)
            case Recalled(turn=turn):
                if self.recall is not None:
                    self.recall(turn)
            case Refused(turn=turn, refusal=refusal):
                self.ledger.withdrawn(turn)
                self.admissions.refuse(turn, refusal)

    def _confirmed(self, seq: int) -> None:
        for report, made in self._outbox.confirmed(seq):
            self.ledger.reported(report, made)

    def _catch_up(self, *, started_anew: bool, is_returning: bool) -> Iterator[bytes]:
        if started_anew:
            for spec in self.ledger.replicas():
                yield to_bytes(AddReplica(0, spec))  # number 0: nobody waits for the answer
        yield from resync_frames(self.ledger.resync(_now()), is_returning=is_returning)
        yield from self._outbox.unconfirmed()
        yield from self._requests.unanswered()
        if self._seat is not None:
            yield to_bytes(Joined(self._seat.inventory()))
        for turn in self.admissions.turns():
            yield from self._offer_again(turn)

    async def _answer_log(self, asked: AskLog) -> None:
        if self._seat is not None:
            found = await self._seat.log(asked.model, asked.after)
            self.say(to_bytes(LogLines(asked.request, found.lines, found.next)))

    def _offer_again(self, turn: TurnId) -> Iterator[bytes]:
        offer = self.ledger.held_offer(turn, _now())
        if offer is None:
            return
        frame = _admit(offer, FRAME_BYTES_MAX)
        if isinstance(frame, Refusal):
            self.ledger.withdrawn(turn)
            self.admissions.refuse(turn, frame)
        else:
            yield frame


def _admit(offer: TurnOffer, limit: int) -> bytes | Refusal:
    try:
        return to_bytes(Admit(offer), limit=limit)
    except FrameError as error:
        _log.warning("offer_unsendable", extra={"turn": offer.turn, "error": str(error)})
        return Refusal(reason=RefusalReason.SCHEDULER_FAULT, message=f"the turn does not fit the link: {error}")


def _now() -> Instant:
    return Instant(asyncio.get_running_loop().time())
