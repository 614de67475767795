"""The arm `llama-swap`: models loaded and unloaded in the order in which llama-swap does it. It knows turns, not runs.

A turn for a model that is up goes there at once, past all that wait. Another waits until no model that would have to
go has a turn in flight; then those are stopped and its model is loaded. Whoever waits is tried in order of arrival
whenever something has ended. What has to go is the fewest models that make room, as its sets would be declared.
"""

from itertools import combinations

from luftpause.testkit.sim.clients import SimTurn
from luftpause.testkit.sim.forwarding import Forwarding
from luftpause.testkit.sim.pool import Pool
from luftpause.testkit.sim.setting import Setting


class Swap(Forwarding):
    """One queue, and what each model is up to."""

    def __init__(self, pool: Pool, setting: Setting) -> None:
        super().__init__(pool, setting)
        self._parked: list[SimTurn] = []
        self._up: set[int] = set()
        self._loading: set[int] = set()
        self._stopping: set[int] = set()
        self._next: dict[int, frozenset[int]] = {}

    def offered(self, turn: SimTurn) -> None:
        """Serve it, or let it wait."""
        if not self._serve(turn):
            self._parked.append(turn)

    def finished(self, turn: SimTurn) -> None:
        """Try those that wait."""
        super().finished(turn)
        self._try_all()

    def failed(self, turn: SimTurn, cause: str) -> None:
        """Try those that wait."""
        super().failed(turn, cause)
        self._try_all()

    def loaded(self, replica: int) -> None:
        """Serve those that wait for it."""
        self._loading.discard(replica)
        self._up.add(replica)
        self._try_all()

    def unloaded(self, replica: int) -> None:
        """Load what it made room for, once all are gone that were to go."""
        self._stopping.discard(replica)
        for wanted, victims in list(self._next.items()):
            if not victims & self._stopping:
                del self._next[wanted]
                self._load(wanted)
        self._try_all()

    def _try_all(self) -> None:
        self._parked = [turn for turn in self._parked if not self._serve(turn)]

    def _serve(self, turn: SimTurn) -> bool:
        wanted = self.setting.serving(turn.run.plan.model)[0]
        if wanted in self._up:
            self.send(turn, wanted)
            return True
        if wanted in self._loading or wanted in self._stopping or wanted in self._next:
            return False
        victims = self._victims(wanted)
        if self._next or victims & self._loading or any(self.in_flight[victim] for victim in victims):
            return False
        for victim in victims:
            self._up.discard(victim)
            self._stopping.add(victim)
            self.pool.unload(victim)
        if victims:
            self._next[wanted] = victims
        else:
            self._load(wanted)
        return False

    def _load(self, replica: int) -> None:
        self._loading.add(replica)
        self.pool.load(replica)

    def _victims(self, wanted: int) -> frozenset[int]:
        """Return the fewest models that must go for one; of as few, those declared first."""
        there = sorted(self._up | self._loading)
        for size in range(len(there) + 1):
            for gone in combinations(there, size):
                stays = [self._memory(each) for each in (*there, wanted) if each not in gone]
                if sum(stays) <= self.setting.memory:
                    return frozenset(gone)
        raise AssertionError(f"replica {wanted} does not fit alone")

    def _memory(self, replica: int) -> int:
        launch = self.setting.replicas[replica].launch
        return 0 if launch is None else launch.memory
