"""A desk in front of another that writes down every call in order, and lets a test wait for one."""

import asyncio
from collections.abc import Callable, Sequence

from luftpause.core.model.ids import ModelName, PeerId, PrincipalId, ReplicaId, RunId
from luftpause.core.model.replicas import ReplicaSpec
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import PeerResynced, TurnReport
from luftpause.ports.scheduler import SchedulerDesk, Ticket

WAIT_S = 10.0

Call = TurnOffer | TurnReport | PeerResynced | ReplicaSpec | PeerId | tuple[str, str]


class RecordingDesk:
    """A `SchedulerDesk`. `calls` holds what was said, replies aside; a lost peer is its id."""

    def __init__(self, desk: SchedulerDesk, calls: list[Call] | None = None) -> None:
        self._desk = desk
        self._stirred = asyncio.Event()
        self.calls: list[Call] = [] if calls is None else calls

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, looking again after each call."""
        async with asyncio.timeout(WAIT_S):
            while not holds():
                self._stirred.clear()
                await self._stirred.wait()

    def reports(self) -> list[TurnReport]:
        return [call for call in self.calls if isinstance(call, TurnReport)]

    def offers(self) -> list[TurnOffer]:
        return [call for call in self.calls if isinstance(call, TurnOffer)]

    def resyncs(self) -> list[PeerResynced]:
        return [call for call in self.calls if isinstance(call, PeerResynced)]

    def _note(self, call: Call) -> None:
        self.calls.append(call)
        self._stirred.set()

    def admit(self, offer: TurnOffer) -> Ticket:
        self._note(offer)
        return self._desk.admit(offer)

    def lacks_word(self, offer: TurnOffer) -> bool:
        return self._desk.lacks_word(offer)

    def report(self, report: TurnReport) -> None:
        self._note(report)
        self._desk.report(report)

    def end_run(self, principal: PrincipalId, run: RunId) -> bool:
        self._note(("end_run", run))
        return self._desk.end_run(principal, run)

    def models(self) -> Sequence[ModelName]:
        return self._desk.models()

    def resync(self, report: PeerResynced) -> None:
        self._note(report)
        self._desk.resync(report)

    def peer_lost(self, peer: PeerId) -> None:
        self._note(peer)
        self._desk.peer_lost(peer)

    def add_replica(self, spec: ReplicaSpec) -> None:
        self._note(spec)
        self._desk.add_replica(spec)

    def remove_replica(self, replica: ReplicaId) -> None:
        self._note(("remove_replica", replica))
        self._desk.remove_replica(replica)
