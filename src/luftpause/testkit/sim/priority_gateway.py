"""The arm `smg`: the Shepherd Model Gateway with its priority scheduler on, in front of cache-aware routing.

It gates requests by slots, not by what memory holds, and knows no runs: of all slots a share is kept for interactive
requests and not lent; who finds none waits in its class's queue. Freed slots go to a head that waited beyond its
class's limit, lowest class first and past the reserve, else to the highest class. An interactive request that must wait
takes the slot of the youngest batch request that has no first token yet: that one fails, and its agent tries again.
Who waits longer than its class's queue allows is refused.

Read in its source (lightseekorg/smg, `middleware/scheduler`): slots, order, starvation and queue times. Slots are set
to what a replica's memory holds, as `slots` of a scenario says, because at its defaults it counts what an engine may
run at most, which is never reached. Preemption was seen on the wheel 1.13.0.
"""

from collections import deque
from typing import Final

from luftpause.core.model.turns import ServiceClass
from luftpause.testkit.sim.clients import SimTurn, TurnPhase
from luftpause.testkit.sim.pool import Pool
from luftpause.testkit.sim.routers import CacheAware
from luftpause.testkit.sim.setting import Setting

STARVING_S: Final = {ServiceClass.INTERACTIVE: 5.0, ServiceClass.BATCH: 120.0}
QUEUE_S: Final = {ServiceClass.INTERACTIVE: 30.0, ServiceClass.BATCH: 300.0}
"""Its defaults for the classes `interactive` and `bulk`."""


class PriorityGateway(CacheAware):
    """Slots over all replicas, a queue for each class, then the router."""

    def __init__(self, pool: Pool, setting: Setting) -> None:
        super().__init__(pool, setting)
        self._slots = setting.router.slots * len(setting.replicas)
        self._reserved = round(setting.router.reserved * self._slots)
        self._waiting: dict[ServiceClass, deque[SimTurn]] = {each: deque() for each in ServiceClass}
        self._at_work: dict[int, SimTurn] = {}
        self._answering: set[int] = set()

    def offered(self, turn: SimTurn) -> None:
        """Give it a slot, or let it wait."""
        own = turn.run.service_class
        if self._has_slot(own):
            self._start(turn)
            return
        self._waiting[own].append(turn)
        self.pool.wake_at(self.pool.now + QUEUE_S[own])
        if own is ServiceClass.INTERACTIVE:
            self._preempt()

    def spoke(self, turn: SimTurn, grown: int = 0) -> None:
        """From now on it is not taken back."""
        self._answering.add(turn.key)

    def finished(self, turn: SimTurn) -> None:
        """A slot is free."""
        self._end(turn)

    def failed(self, turn: SimTurn, cause: str) -> None:
        """A slot is free."""
        self._end(turn)

    def woke_up(self) -> None:
        """Refuse who waited too long."""
        for service_class, queue in self._waiting.items():
            while queue and self.pool.now - queue[0].offered_at >= QUEUE_S[service_class]:
                self.pool.refuse(queue.popleft())

    def at_rest(self) -> None:
        """Check that every slot is free and nobody waits."""
        super().at_rest()
        assert not any(self._waiting.values()), "turns wait at rest"
        assert not self._at_work, f"slots taken at rest: {list(self._at_work)}"

    def _start(self, turn: SimTurn) -> None:
        self._at_work[turn.key] = turn
        super().offered(turn)

    def _end(self, turn: SimTurn) -> None:
        super().finished(turn)
        self._at_work.pop(turn.key, None)
        self._answering.discard(turn.key)
        while self._wake_next():
            pass

    def _has_slot(self, service_class: ServiceClass) -> bool:
        interactive = sum(turn.run.service_class is ServiceClass.INTERACTIVE for turn in self._at_work.values())
        kept = max(0, self._reserved - interactive) if service_class is ServiceClass.BATCH else 0
        return len(self._at_work) + kept < self._slots

    def _wake_next(self) -> bool:
        now = self.pool.now
        for service_class in (ServiceClass.BATCH, ServiceClass.INTERACTIVE):
            queue = self._waiting[service_class]
            starves = bool(queue) and now - queue[0].offered_at > STARVING_S[service_class]
            if starves and len(self._at_work) < self._slots:
                self._start(queue.popleft())
                return True
        for service_class in (ServiceClass.INTERACTIVE, ServiceClass.BATCH):
            queue = self._waiting[service_class]
            if queue and self._has_slot(service_class):
                self._start(queue.popleft())
                return True
        return False

    def _preempt(self) -> None:
        victims = [
            turn
            for turn in self._at_work.values()
            if turn.run.service_class is ServiceClass.BATCH
            and turn.key not in self._answering
            and turn.phase is TurnPhase.SENT
        ]
        if victims:
            youngest = max(victims, key=lambda turn: turn.key)
            self._answering.add(youngest.key)  # it is on its way out, and is no victim twice
            self.pool.cut(youngest)
