"""The scheduler's side of one connection: greets, takes frames in order, answers.

Whatever one client sends, it harms no other: an ill-formed frame ends this connection, and a desk that raises fails
one frame. It does not know what happens to a peer whose connection is gone.
"""

import asyncio
import hmac
import logging
from typing import Final, Protocol, assert_never

from luftpause.adapters.link.codec import (
    FRAME_BYTES_MAX,
    FrameError,
    FrameReader,
    client_frame,
    report_in,
    to_bytes,
    told_in,
)
from luftpause.adapters.link.frames import (
    FAULT_FULL,
    FAULT_ILL_FORMED,
    FAULT_LATE,
    FAULT_PROTOCOL,
    FAULT_REPLACED,
    FAULT_TOKEN,
    LINK_PROTOCOL,
    Accepted,
    Acknowledged,
    AddReplica,
    Admit,
    Answer,
    ClientFrame,
    Done,
    EndRun,
    Failed,
    Fault,
    Goodbye,
    Hello,
    Joined,
    LauncherFrame,
    ListModels,
    LogLines,
    Models,
    PeerFrame,
    Placed,
    Refused,
    RemoveReplica,
    Report,
    Request,
    Resync,
    RunGone,
    ServerFrame,
    Told,
    Welcome,
)
from luftpause.adapters.link.gathering import Gathering
from luftpause.adapters.link.remote_seat import RemoteSeat
from luftpause.adapters.link.resync import ResyncParts
from luftpause.adapters.link.wire import Wire
from luftpause.core.model.ids import PeerId, TurnId
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.model.replicas import Placement
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import TurnAbandoned, TurnFailed, TurnFinished
from luftpause.core.scheduling.residency.events import LauncherJoined
from luftpause.ports.launcher import LauncherDesk
from luftpause.ports.scheduler import SchedulerDesk, TurnRefusedError

HELLO_S: Final = 5.0
"""How long a connection may stay without its hello."""

HELLO_BYTES_MAX: Final = 4096
"""A stranger's first frame is no longer than this."""

PEER_BYTES_MAX: Final = 128

UNSENT_MAX: Final = 8 * 1024 * 1024
"""Placements that wait for one slow client: some 40,000 of them; past that it is cut off and finds its turns again."""

_BROKEN: Final = "the scheduler failed on this; its log says why"

_log = logging.getLogger("luftpause.link")


class FrontDesk(Protocol):
    """Who keeps count of the peers."""

    def has_room(self, conversation: "Conversation") -> bool:
        """Take note of a new connection; False when there are too many already, or we are about to leave."""
        ...

    def keeps(self, conversation: "Conversation", offer: TurnOffer) -> bool:
        """Say whether an offer waits for a word of another peer; then it is admitted later."""
        ...

    def turn_over(self, turn: TurnId) -> None:
        """The desk was told that a turn has ended."""
        ...

    def greeted(self, conversation: "Conversation", peer: PeerId) -> None:
        """A peer said a good hello here; an older conversation of the same peer is over."""
        ...

    def left(self, conversation: "Conversation", *, for_good: bool) -> None:
        """The connection is gone. `for_good`: the peer said goodbye."""
        ...


class Conversation:
    """One client. `token` is what it must know (empty: none), `instance` the scheduler's.

    Without `launchers` none may join.
    """

    def __init__(
        self,
        desk: SchedulerDesk,
        front: FrontDesk,
        gathering: Gathering,
        *,
        token: str,
        instance: str,
        launchers: LauncherDesk | None = None,
    ) -> None:
        self._desk = desk
        self._launchers = launchers
        self._seat: RemoteSeat | None = None
        self._front = front
        self._gathering = gathering
        self._token = token.encode()
        self._instance = instance
        self._reader = FrameReader(HELLO_BYTES_MAX)
        self._wire: Wire | None = None
        self._hello_by: asyncio.TimerHandle | None = None
        self._parts: ResyncParts | None = None
        self._resynced = False
        self._seen = 0
        self._confirmed = 0
        self._said_goodbye = False
        self.peer: PeerId | None = None
        """Who this is; None before its hello."""

    def new_wire(self) -> Wire:
        """Return the protocol for the connection that this conversation runs over."""
        return Wire(self, self._reader, unsent_max=UNSENT_MAX, patient=True)

    def wire_opened(self, wire: Wire) -> None:
        """See Listener."""
        self._wire = wire
        if self._front.has_room(self):
            self._hello_by = asyncio.get_running_loop().call_later(HELLO_S, self._no_hello)
        else:
            self.part(FAULT_FULL, "no room for another connection")

    def payload_received(self, payload: bytes) -> None:
        """See Listener."""
        frame = client_frame(payload)
        if self.peer is None:
            self._greet(frame)
        else:
            self._take(frame, self.peer)

    def batch_taken(self) -> None:
        """See Listener. One confirmation answers all reports that arrived together."""
        if self._seen != self._confirmed:
            self._confirmed = self._seen
            self._say(Acknowledged(self._seen))

    def ill_formed(self, error: FrameError) -> None:
        """See Listener."""
        self.part(FAULT_ILL_FORMED, str(error))

    def wire_lost(self) -> None:
        """See Listener."""
        self._end_wait()
        if self._wire is not None and self._wire.overflowed:
            _log.warning("peer_too_slow", extra={"peer": self.peer, "unsent_max": UNSENT_MAX})
        self._wire = None
        if self._seat is not None and self._launchers is not None:
            self._launchers.left(self._seat)
        self._front.left(self, for_good=self._said_goodbye)

    def part(self, code: str, message: str) -> None:
        """Tell the client why, and close."""
        _log.warning("peer_parted", extra={"peer": self.peer, "code": code, "cause": message})
        self._say(Fault(code, message))
        self.close()

    def replaced(self) -> None:
        """The same peer came again on another connection."""
        self.part(FAULT_REPLACED, "this peer connected anew")

    def close(self) -> None:
        """Close once what was said has left."""
        self._end_wait()
        if self._wire is not None:
            self._wire.close()

    def abort(self) -> None:
        """Cut the connection."""
        if self._wire is not None:
            self._wire.abort()

    def _greet(self, frame: ClientFrame) -> None:
        if not isinstance(frame, Hello):
            raise FrameError(f"{type(frame).__name__} before the hello")
        if frame.protocol != LINK_PROTOCOL:
            self.part(FAULT_PROTOCOL, f"the scheduler speaks protocol {LINK_PROTOCOL}, the peer {frame.protocol}")
        elif self._token and not hmac.compare_digest(frame.token.encode(), self._token):
            self.part(FAULT_TOKEN, "the scheduler does not accept this token")
        elif not 0 < len(frame.peer.encode()) <= PEER_BYTES_MAX:
            raise FrameError(f"a peer's name has 1 to {PEER_BYTES_MAX} bytes")
        else:
            self._end_wait()
            self._reader.limit = FRAME_BYTES_MAX
            self.peer = frame.peer
            self._parts = ResyncParts(frame.peer)
            self._front.greeted(self, frame.peer)
            self._gathering.greeted(self)
            self._say(Welcome(LINK_PROTOCOL, self._instance))

    def _take(self, frame: ClientFrame, peer: PeerId) -> None:
        try:
            if isinstance(frame, LauncherFrame):
                self._launcher_said(frame)
            else:
                self._perform(frame, peer)
        except FrameError:
            raise
        except Exception as error:  # noqa: BLE001 a fault of the desk stays with the frame that met it
            _log.error("desk_failed", exc_info=error, extra={"peer": peer, "frame": type(frame).__name__})
            self._failed(frame)

    def _perform(self, frame: PeerFrame, peer: PeerId) -> None:
        match frame:
            case Admit(offer=offer):
                self._check_resynced(frame)
                if offer.peer != peer:
                    raise FrameError("an offer in another peer's name")
                if not self._gathering.defers(self, offer) and not self._front.keeps(self, offer):
                    self._admit(offer)
            case Report():
                self._check_resynced(frame)
                self._report(frame)
            case Resync():
                self._resync(frame)
            case EndRun() | ListModels() | AddReplica() | RemoveReplica():
                self._say(self._answer(frame))
            case Goodbye():
                self._said_goodbye = True
                self.batch_taken()
                self.close()
            case Hello():
                raise FrameError("a second hello")
            case _:
                assert_never(frame)

    def _report(self, frame: Report) -> None:
        report = report_in(frame)
        self._seen = frame.seq
        if isinstance(report, TurnFinished | TurnFailed | TurnAbandoned):
            self._gathering.withdrawn(report.turn)
            self._desk.report(report)
            self._front.turn_over(report.turn)
        else:
            self._desk.report(report)

    def _failed(self, frame: ClientFrame) -> None:
        match frame:
            case Admit(offer=offer):
                self._say(Refused(offer.turn, Refusal(reason=RefusalReason.SCHEDULER_FAULT, message=_BROKEN)))
            case EndRun() | ListModels() | AddReplica() | RemoveReplica():
                self._say(Failed(frame.request, _BROKEN))
            case Hello() | Resync() | Report() | Joined() | Told() | LogLines() | Goodbye():
                pass  # nobody waits for an answer
            case _:
                assert_never(frame)

    def _launcher_said(self, frame: LauncherFrame) -> None:
        match frame:
            case Joined(inventory=inventory):
                self._join(inventory)
            case Told():
                if self._launchers is None or self._seat is None:
                    raise FrameError("a launcher's report before it joined")
                self._launchers.told(self._seat.launcher, told_in(frame))
            case LogLines():
                if self._seat is not None:
                    self._seat.answered(frame)
            case _:
                assert_never(frame)

    def _join(self, inventory: LauncherJoined) -> None:
        if self._launchers is None:
            raise FrameError("no launcher may join here")
        if self._seat is None:
            self._seat = RemoteSeat(inventory, self._say)
        elif self._seat.launcher != inventory.launcher:
            raise FrameError("a second launcher on one connection")
        self._seat.took_stock(inventory)
        self._launchers.joined(self._seat, inventory)

    def _check_resynced(self, frame: ClientFrame) -> None:
        if not self._resynced:
            raise FrameError(f"{type(frame).__name__} before the resync")

    def _resync(self, frame: Resync) -> None:
        if self._parts is None:
            raise FrameError("a second resync")
        whole = self._parts.take(frame)
        if whole is not None:
            self._parts = None
            self._resynced = True
            self._desk.resync(whole)
            self._gathering.resynced(self, whole.peer, is_returning=frame.is_returning)

    def admit_now(self, offer: TurnOffer) -> None:
        """See Peer."""
        assert self.peer is not None, "it has offered a turn, so it is known"
        self._take(Admit(offer), self.peer)

    def _admit(self, offer: TurnOffer) -> None:
        try:
            ticket = self._desk.admit(offer)
        except TurnRefusedError as refused:
            self._say(Refused(offer.turn, refused.refusal))
            return
        self._say(Accepted(offer.turn, ticket.run, ticket.parent))
        if ticket.placement.done():
            self._settled(offer.turn, ticket.placement)
        else:
            ticket.placement.add_done_callback(lambda placement: self._settled(offer.turn, placement))

    def _settled(self, turn: TurnId, placement: asyncio.Future[Placement]) -> None:
        if placement.cancelled():
            self._say(Refused(turn, Refusal(reason=RefusalReason.EXPIRED, message="the turn left the queue")))
            return
        error = placement.exception()
        if error is None:
            self._say(Placed(turn, placement.result()))
        elif isinstance(error, TurnRefusedError):
            self._say(Refused(turn, error.refusal))
        else:
            _log.error("desk_failed", exc_info=error, extra={"peer": self.peer, "turn": turn})
            self._say(Refused(turn, Refusal(reason=RefusalReason.SCHEDULER_FAULT, message=_BROKEN)))

    def _answer(self, request: Request) -> Answer:
        match request:
            case EndRun(request=number, principal=principal, run=run):
                return RunGone(number, self._desk.end_run(principal, run))
            case ListModels(request=number):
                return Models(number, tuple(self._desk.models()))
            case AddReplica(request=number, spec=spec):
                self._desk.add_replica(spec)
                self._gathering.models_changed()
                return Done(number)
            case RemoveReplica(request=number, replica=replica):
                self._desk.remove_replica(replica)
                return Done(number)
            case _:
                assert_never(request)

    def _say(self, frame: ServerFrame) -> None:
        if self._wire is not None:
            try:
                self._wire.send(to_bytes(frame))
            except FrameError as error:  # our own answer: no fault of the client's
                raise ValueError(str(error)) from error

    def _no_hello(self) -> None:
        self.part(FAULT_LATE, f"no hello within {HELLO_S:g} s")

    def _end_wait(self) -> None:
        if self._hello_by is not None:
            self._hello_by.cancel()
            self._hello_by = None
