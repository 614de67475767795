"""The state, open for writing while one event is taken in.

The only place that writes the indices of `State`: each method changes one fact and every index over it. Nothing of a
draft is seen outside `decide`; `freeze` returns the new state, and the old one was never touched. Decides nothing,
but remembers which pools may have gained room, so that the held turns in them are tried again.
"""

from dataclasses import replace
from typing import TypeVar

from immutables import Map

from luftpause.core.model.ids import Instant, PeerId, ReplicaId, TurnId
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.actions import Action
from luftpause.core.scheduling.affinity import keeps_room, pinned_to, pool_of
from luftpause.core.scheduling.events import RunPhase
from luftpause.core.scheduling.state import Decision, HeldTurn, Lane, Place, Pool, Replica, Run, Service, State, Turn

Counted = TypeVar("Counted")


class Draft:
    """One event's changes. Create, change, `freeze`."""

    __slots__ = (
        "_actions",
        "_stirred",
        "held",
        "in_flight_by_payer",
        "in_flight_by_principal",
        "lanes",
        "limits",
        "next_seq",
        "open_by_peer",
        "replicas",
        "run_counts",
        "run_deadlines",
        "runs",
        "serving",
        "signs",
        "turn_deadlines",
        "turns",
    )

    def __init__(self, state: State) -> None:
        self.limits = state.limits
        self.replicas = state.replicas
        self.runs = state.runs
        self.turns = state.turns
        self.held = state.held
        self.signs = state.signs
        self.serving = state.serving
        self.lanes = state.lanes
        self.open_by_peer = state.open_by_peer
        self.in_flight_by_principal = state.in_flight_by_principal
        self.in_flight_by_payer = state.in_flight_by_payer
        self.run_counts = state.run_counts
        self.turn_deadlines = state.turn_deadlines
        self.run_deadlines = state.run_deadlines
        self.next_seq = state.next_seq
        self._actions: list[Action] = []
        self._stirred: dict[Pool, None] = {}

    def freeze(self) -> Decision:
        """Return the new state and the orders, in the sequence in which they were given."""
        state = State(
            limits=self.limits,
            replicas=self.replicas,
            runs=self.runs,
            turns=self.turns,
            held=self.held,
            signs=self.signs,
            serving=self.serving,
            lanes=self.lanes,
            open_by_peer=self.open_by_peer,
            in_flight_by_principal=self.in_flight_by_principal,
            in_flight_by_payer=self.in_flight_by_payer,
            run_counts=self.run_counts,
            turn_deadlines=self.turn_deadlines,
            run_deadlines=self.run_deadlines,
            next_seq=self.next_seq,
        )
        return Decision(state=state, actions=tuple(self._actions))

    def order(self, action: Action) -> None:
        """Give an order."""
        self._actions.append(action)

    def take_seq(self) -> int:
        """Return a number that no other thing of this state has."""
        seq = self.next_seq
        self.next_seq = seq + 1
        return seq

    def take_stirred(self) -> tuple[Pool, ...]:
        """Return the pools whose held turns should be tried again, and forget them."""
        stirred = tuple(self._stirred)
        self._stirred = {}
        return stirred

    def set_replica(self, replica: Replica) -> None:
        """Put a replica in place of its old self; whatever it serves is tried again."""
        self.replicas = self.replicas.set(replica.replica, replica)
        if replica.spec is not None and self.held:
            self._stir(replica.replica)
            for model in replica.spec.models:
                self._stir((replica.spec.kind, model))

    def declare(self, replica: Replica) -> None:
        """Put a declared replica in, and list it under all that it serves."""
        self.set_replica(replica)
        for service in _services(replica):
            serving = (*self.serving.get(service, ()), replica.replica)
            in_order = sorted(serving, key=lambda other: self.replicas[other].order)
            self.serving = self.serving.set(service, tuple(in_order))

    def withdraw(self, replica: Replica) -> None:
        """Take a replica off the lists of all that it serves; the exact inverse of what `declare` lists."""
        for service in _services(replica):
            rest = tuple(other for other in self.serving.get(service, ()) if other != replica.replica)
            self.serving = self.serving.set(service, rest) if rest else self.serving.delete(service)

    def drop_replica(self, replica: ReplicaId) -> None:
        """Take a replica out that is neither declared nor in use."""
        self.replicas = self.replicas.delete(replica)

    def set_run(self, run: Run) -> None:
        """Put a run in place of its old self, with its room, its deadline and the pools of its held turns."""
        old = self.runs.get(run.run)
        self.runs = self.runs.set(run.run, run)
        self._recount(old, run)
        self._keep_room(keeps_room(self.replicas, old), keeps_room(self.replicas, run))
        if run.at_rest:
            self.run_deadlines = self.run_deadlines.put(run.run, run.ended_at + self.limits.run_idle_expiry_s)
        elif old is not None and old.at_rest:
            self.run_deadlines = self.run_deadlines.drop(run.run)
        if run.held and old is not None and self._pin(old) != self._pin(run):
            for turn in run.held:
                self.reassign(turn)

    def drop_run(self, run: Run) -> None:
        """Forget a run that has no held turns; turns in flight no longer change it."""
        for turn_id in run.turns:
            self.turns = self.turns.set(turn_id, replace(self.turns[turn_id], in_run=False))
        self.runs = self.runs.delete(run.run)
        self._recount(run, None)
        self._keep_room(keeps_room(self.replicas, run), None)
        self.run_deadlines = self.run_deadlines.drop(run.run)

    def renew(self, turn: TurnId, now: Instant) -> None:
        """Note a sign of life of an open turn. Its deadline moves when its bucket comes up."""
        if turn in self.signs:
            self.signs = self.signs.set(turn, now)

    def enqueue(self, held: HeldTurn) -> None:
        """Let a turn wait."""
        turn = held.arrival.turn
        self.held = self.held.set(turn, held)
        self._set_lane(held, _inserted(self._lane(held), held.place))

    def dequeue(self, turn: TurnId) -> HeldTurn:
        """Take a turn out of its lane."""
        held = self.held[turn]
        self.held = self.held.delete(turn)
        self._set_lane(held, tuple(place for place in self._lane(held) if place != held.place))
        return held

    def reassign(self, turn: TurnId) -> None:
        """Move a held turn to the pool that its run belongs to now."""
        held = self.held[turn]
        run = self.runs.get(held.arrival.run) if held.arrival.kind is ReplicaKind.GENERATIVE else None
        pool = pool_of(self.replicas, run, held.arrival)
        if pool != held.pool:
            self.dequeue(turn)
            self.enqueue(replace(held, pool=pool))
            self._stir(pool)

    def charge(self, turn: Turn) -> None:
        """Count a turn as in flight: on its replica, for its caller."""
        arrival = turn.arrival
        self.turns = self.turns.set(arrival.turn, turn)
        replica = self.replicas[turn.replica]
        self.replicas = self.replicas.set(
            turn.replica, replace(replica, in_flight=replica.in_flight + 1, placed=replica.placed + 1)
        )
        payer = (arrival.principal, arrival.caller)
        self.in_flight_by_principal = _added(self.in_flight_by_principal, arrival.principal, 1)
        self.in_flight_by_payer = _added(self.in_flight_by_payer, payer, 1)

    def discharge(self, turn: Turn) -> None:
        """The exact inverse of `charge`, but for the count of turns ever placed."""
        arrival = turn.arrival
        self.turns = self.turns.delete(arrival.turn)
        replica = self.replicas[turn.replica]
        if replica.in_flight == 1 and not replica.declared and replica.spec is not None:
            self.drop_replica(turn.replica)
        else:
            self.set_replica(replace(replica, in_flight=replica.in_flight - 1))
        payer = (arrival.principal, arrival.caller)
        self.in_flight_by_principal = _added(self.in_flight_by_principal, arrival.principal, -1)
        self.in_flight_by_payer = _added(self.in_flight_by_payer, payer, -1)

    def track(self, turn: TurnId, peer: PeerId, now: Instant) -> None:
        """Count a turn as open: it has a sign of life, a deadline and a dataplane."""
        self.signs = self.signs.set(turn, now)
        self.turn_deadlines = self.turn_deadlines.put(turn, now + self.limits.turn_timeout_s)
        self.open_by_peer = self.open_by_peer.set(
            peer, self.open_by_peer.get(peer, Map[TurnId, None]()).set(turn, None)
        )

    def untrack(self, turn: TurnId, peer: PeerId) -> None:
        """The exact inverse of `track`."""
        self.signs = self.signs.delete(turn)
        self.turn_deadlines = self.turn_deadlines.drop(turn)
        turns = self.open_by_peer[peer].delete(turn)
        self.open_by_peer = self.open_by_peer.set(peer, turns) if turns else self.open_by_peer.delete(peer)

    def _stir(self, pool: Pool) -> None:
        if pool in self.lanes:
            self._stirred[pool] = None

    def _pin(self, run: Run) -> ReplicaId | None:
        home = pinned_to(self.replicas, run)
        return None if home is None else home.replica

    def _recount(self, old: Run | None, new: Run | None) -> None:
        before = None if old is None else (old.phase, old.service_class)
        after = None if new is None else (new.phase, new.service_class)
        if before != after:
            self._count_run(before, -1)
            self._count_run(after, 1)

    def _count_run(self, key: tuple[RunPhase, ServiceClass] | None, change: int) -> None:
        if key is not None:
            self.run_counts = _added(self.run_counts, key, change)

    def _keep_room(self, before: Replica | None, after: Replica | None) -> None:
        if before is not None and (after is None or after.replica != before.replica):
            self.set_replica(replace(before, kept=before.kept - 1))
        if after is not None and (before is None or after.replica != before.replica):
            self.replicas = self.replicas.set(after.replica, replace(after, kept=after.kept + 1))

    def _lane(self, held: HeldTurn) -> tuple[Place, ...]:
        lanes = self.lanes.get(held.pool)
        return () if lanes is None else lanes.get(held.lane, ())

    def _set_lane(self, held: HeldTurn, places: tuple[Place, ...]) -> None:
        lanes = self.lanes.get(held.pool, Map[Lane, "tuple[Place, ...]"]())
        lanes = lanes.set(held.lane, places) if places else lanes.delete(held.lane)
        self.lanes = self.lanes.set(held.pool, lanes) if lanes else self.lanes.delete(held.pool)


def _services(replica: Replica) -> tuple[Service, ...]:
    """Return what a replica offers, each once, however often its declaration repeats a model."""
    spec = replica.spec
    return () if spec is None else tuple((spec.kind, model) for model in dict.fromkeys(spec.models))


def _inserted(places: tuple[Place, ...], place: Place) -> tuple[Place, ...]:
    return (*places, place) if not places or places[-1] < place else tuple(sorted((*places, place)))


def _added(counts: Map[Counted, int], key: Counted, change: int) -> Map[Counted, int]:
    total = counts.get(key, 0) + change
    return counts.set(key, total) if total else counts.delete(key)
