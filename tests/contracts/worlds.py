"""Every way to hold a scheduler, behind one face: what the contract suite runs over.

A world has a link, the desk behind it, and `disturb`: what goes wrong in the middle of a test. In a world where
nothing can go wrong it does nothing.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Protocol

import uvloop

from contracts.fake_desk import FakeDesk
from contracts.offers import PEER, spec
from contracts.recording_desk import Call, RecordingDesk
from contracts.relay import NewLoop, Relay
from luftpause.adapters.link.client import RemoteLink
from luftpause.adapters.link.direct import DirectLink
from luftpause.adapters.link.server import Graces, LinkServer
from luftpause.core.model.ids import TurnId
from luftpause.core.scheduling.events import ReplicaProbed
from luftpause.core.scheduling.state import Limits
from luftpause.ports.scheduler import SchedulerDesk, SchedulerLink
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.scheduler.settings import SchedulerSettings

GRACE_S = 30.0
RESYNC_GRACE_S = 0.2
TOKEN = "open sesame"


class Rig(Protocol):
    """A desk that a test can move: it serves the model `tiny`, and holds turns while told to."""

    @property
    def desk(self) -> SchedulerDesk:
        """The desk itself."""
        ...

    def hold(self) -> None:
        """Place no new turns."""
        ...

    def release(self) -> None:
        """Place the held turns, and new ones at once."""
        ...

    def recall(self, turn: TurnId) -> None:
        """Ask a turn of PEER's back that has a place."""
        ...

    def in_flight(self) -> set[TurnId]:
        """Turns that have a place."""
        ...

    def held(self) -> set[TurnId]:
        """Turns in the queue."""
        ...


class FakeRig:
    """The fake desk as a rig."""

    def __init__(self) -> None:
        self.desk = FakeDesk([spec()])

    def hold(self) -> None:
        self.desk.holding = True

    def release(self) -> None:
        self.desk.release()

    def recall(self, turn: TurnId) -> None:
        self.desk.recall(turn)

    def in_flight(self) -> set[TurnId]:
        return set(self.desk.placed)

    def held(self) -> set[TurnId]:
        return set(self.desk.held)


class ServiceRig:
    """The real scheduler as a rig. It holds whatever its only replica would serve while that one is unhealthy.

    Its slow start is wide enough for every test, so that a release places all that is held.
    """

    def __init__(self) -> None:
        self.desk = SchedulerService(SchedulerSettings(limits=Limits(slow_start=1000)))
        self.desk.start()
        self.desk.add_replica(spec())
        self._probe(healthy=True)

    def hold(self) -> None:
        self._probe(healthy=False)

    def release(self) -> None:
        self._probe(healthy=True)

    def recall(self, turn: TurnId) -> None:
        self.desk._recalls.order(PEER, turn)

    def in_flight(self) -> set[TurnId]:
        return set(self.desk.state.turns)

    def held(self) -> set[TurnId]:
        return set(self.desk.state.held)

    def _probe(self, *, healthy: bool) -> None:
        self.desk.probed(ReplicaProbed(replica=spec().replica, healthy=healthy))


NewRig = Callable[[], Rig]


class World:
    """In process: the link calls the desk."""

    new_loop: NewLoop = staticmethod(asyncio.new_event_loop)

    def __init__(self, new_rig: NewRig) -> None:
        self.new_rig = new_rig
        self.rig = new_rig()
        self.desk = RecordingDesk(self.rig.desk)
        self.link: SchedulerLink = DirectLink(self.desk)

    async def disturb(self) -> None:
        """Let happen what this world is about, and return when the link has settled again."""

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator["World"]:
        yield self


class RemoteWorld(World):
    """Over TCP, through a relay that can be cut."""

    grace_s = GRACE_S

    def __init__(self, new_rig: NewRig) -> None:
        super().__init__(new_rig)
        self.relay = Relay()
        self.server = self.new_server()

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator["World"]:
        async with self.relay:
            await self.server.start()
            self.relay.target = self.server.port
            link = RemoteLink("127.0.0.1", self.relay.port, peer=PEER, token=TOKEN)
            self.link = link
            await link.start()
            try:
                await link.ready()
                yield self
            finally:
                await link.close()
                await self.server.close()

    def new_server(self) -> LinkServer:
        return LinkServer(self.desk, token=TOKEN, graces=Graces(peer_s=self.grace_s, resync_s=RESYNC_GRACE_S))

    async def cut(self) -> None:
        """Lose the connection, and return when it stands again."""
        before = len(self.desk.resyncs())
        self.relay.cut()
        await self.desk.until(lambda: len(self.desk.resyncs()) > before)

    async def stop_server(self) -> None:
        """Let the scheduler go down."""
        self.relay.target = None
        await self.server.close()

    async def start_anew(self, *, hold: bool) -> None:
        """Let the scheduler come back with an empty memory, and return when the link has told it everything."""
        calls: list[Call] = []
        self.rig = self.new_rig()
        if hold:
            self.rig.hold()
        self.desk = RecordingDesk(self.rig.desk, calls)
        self.server = self.new_server()
        await self.server.start()
        self.relay.target = self.server.port
        await self.desk.until(lambda: bool(self.desk.resyncs()))


class HastyWorld(RemoteWorld):
    """The scheduler gives a lost peer hardly any time."""

    grace_s = 0.05


class DroppedWorld(RemoteWorld):
    """The connection is lost in the middle; the scheduler remembers."""

    async def disturb(self) -> None:
        await self.cut()


class RestartedWorld(RemoteWorld):
    """The scheduler is started anew in the middle, with an empty memory."""

    async def disturb(self) -> None:
        holding = bool(self.rig.held())
        await self.stop_server()
        await self.start_anew(hold=holding)


class UvloopWorld(RestartedWorld):
    """The same on the loop that the services run on, whose transports are its own."""

    new_loop: NewLoop = staticmethod(uvloop.new_event_loop)


WORLDS: dict[str, type[World]] = {
    "direct": World,
    "remote": RemoteWorld,
    "remote-dropped": DroppedWorld,
    "remote-restarted": RestartedWorld,
    "remote-restarted-uvloop": UvloopWorld,
}
RIGS: dict[str, NewRig] = {"fake": FakeRig, "service": ServiceRig}
