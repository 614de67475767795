"""An account of what should be true, kept from events and orders alone and written without looking at the code.

Every method first takes in what an event means, then audits the orders that it led to. Instants are whole seconds.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from core.scheduling.book_places import SLOW_START, Place
from luftpause.core.model.refusals import RefusalReason
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.model.turns import ServiceClass, TurnShape
from luftpause.core.scheduling.actions import Action, ForgetRun, HoldTurn, PlaceTurn, RefuseTurn
from luftpause.core.scheduling.events import TurnArrived

TURN_TIMEOUT_S = 600
RUN_EXPIRY_S = 1800


def is_in_run(offer: TurnArrived) -> bool:
    return offer.kind is ReplicaKind.GENERATIVE and offer.shape is TurnShape.IN_RUN


@dataclass
class Life:
    """A run: what its last turn left behind, and whether it has a home that has been well ever since."""

    service_class: ServiceClass
    rested_at: int
    paused: bool = False
    home: str | None = None
    bound: bool = False


@dataclass
class Bookkeeper:
    """All that is open, by whom, where."""

    places: dict[str, Place] = field(default_factory=dict)
    flying: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)
    offers: dict[str, TurnArrived] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    orphans: set[str] = field(default_factory=set)
    lives: dict[tuple[str, str], Life] = field(default_factory=dict)
    served: dict[tuple[str, ...], int] = field(default_factory=dict)
    awaited: set[str] = field(default_factory=set)
    lapsed: dict[str, str] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    def is_open(self, turn: str) -> bool:
        return turn in self.flying or turn in self.waiting

    def arrived(self, offer: TurnArrived, now: int, actions: Sequence[Action]) -> None:
        self.revive(offer.turn, now)
        answers = [
            action
            for action in actions
            if isinstance(action, PlaceTurn | HoldTurn | RefuseTurn) and action.turn == offer.turn
        ]
        assert len(answers) == 1, f"one offer, one answer: {answers}"
        if self.is_open(offer.turn):
            self.seen[offer.turn] = now
            answer = answers[0]
            if offer.turn in self.flying:
                assert isinstance(answer, PlaceTurn)
                assert answer.replica == self.flying[offer.turn], "the same placement again"
            else:
                assert isinstance(answer, HoldTurn)
            assert len(actions) == 1, "an offer made again moves nobody"
            return
        served = any(
            place.spec.kind is offer.kind and offer.model in place.spec.models for place in self.places.values()
        )
        if not served:
            assert isinstance(answers[0], RefuseTurn)
            assert answers[0].why.reason is RefusalReason.UNKNOWN_MODEL
            assert len(actions) == 1
            return
        self.offers[offer.turn] = offer
        self.seen[offer.turn] = now
        self.waiting[offer.turn] = None
        if is_in_run(offer):
            name = offer.run, offer.model
            life = self.lives.setdefault(name, Life(service_class=offer.service_class, rested_at=now))
            life.service_class = offer.service_class
        self.audit(actions, newcomer=offer.turn)
        assert isinstance(answers[0], PlaceTurn) is (offer.turn in self.flying)
        if offer.shape is TurnShape.ERRAND and offer.turn in self.waiting:
            able = [place for place in self.places.values() if place.spec.kind is offer.kind and place.healthy]
            assert not [place for place in able if offer.model in place.spec.models], "an errand needs no room"

    def answered(self, turn: str) -> None:
        """Its engine answered it whole: that widens what the replica may have."""
        place = self.places.get(self.flying.get(turn, ""))
        if place is None or place.width is None or place.closed_until is not None:
            return
        where = self.flying[turn]
        if place.refused_at is None:
            is_full = self.flying_on(where) + self.kept_on(where) >= place.width
            place.width += 1
            if place.width >= 2 * SLOW_START and not is_full:
                place.width = None
            return
        place.in_a_row += 1
        if place.in_a_row == place.width:
            place.width, place.in_a_row = place.width + 1, 0
            if place.width > place.refused_at:
                place.width = None

    def refused(self, turn: str, now: int, seconds: float | None) -> None:
        """Its engine refused it, and asked to be left alone for so long."""
        place = self.places.get(self.flying.get(turn, ""))
        if place is None or seconds is None:
            return
        flying = self.flying_on(self.flying[turn])
        if place.closed_until is None and place.healthy:
            place.width = min(max(1, flying // 2), place.width or flying)
            place.refused_at, place.in_a_row = flying, 0
        place.closed_until = max(place.closed_until or 0.0, now + seconds)

    def revive(self, turn: str, now: int) -> None:
        """A turn is heard of that was given up: it is in flight again, and its engine had it all the time."""
        where = self.lapsed.pop(turn, None)
        if where is None:
            return
        self.flying[turn], self.seen[turn] = where, now
        self.served.update(dict.fromkeys(self.parties(turn), next(self.numbers)))

    def forget_lapsed(self, peer: str) -> None:
        """Their dataplane has told what it has, or is gone."""
        for turn in [turn for turn in self.lapsed if self.offers[turn].peer == peer]:
            del self.lapsed[turn]
            self.orphans.discard(turn)

    def flying_on(self, replica: str) -> int:
        return sum(where == replica for where in self.flying.values())

    def ended(self, turn: str, now: int, *, tools: bool = False, answered: bool = False) -> None:
        if not self.is_open(turn):
            return
        offer = self.offers[turn]
        in_run = is_in_run(offer) and turn not in self.orphans
        where = self.flying.pop(turn, None)
        self.waiting.pop(turn, None)
        self.seen.pop(turn)
        self.orphans.discard(turn)
        self.awaited.discard(turn)
        if not in_run:
            return
        life = self.lives[offer.run, offer.model]
        life.rested_at = now
        if where is not None:
            life.paused = tools
            if answered and where in self.places and not self.flying_of(offer.run, offer.model):
                life.home, life.bound = where, True

    def flying_of(self, run: str, model: str) -> list[str]:
        return [turn for turn in self.flying if self.is_of(turn, run, model) and turn not in self.orphans]

    def waiting_of(self, run: str, model: str = "") -> list[str]:
        return [turn for turn in self.waiting if self.is_of(turn, run, model)]

    def is_of(self, turn: str, run: str, model: str) -> bool:
        """Say whether a turn is one of the run, and with this model; "" for any."""
        offer = self.offers[turn]
        return is_in_run(offer) and offer.run == run and model in ("", offer.model)

    def unbind(self, replica: str) -> None:
        for life in self.lives.values():
            if life.home == replica:
                life.bound = False

    def run_ended(self, run: str, actions: Sequence[Action]) -> None:
        refused = [action.turn for action in actions if isinstance(action, RefuseTurn)]
        assert refused == self.waiting_of(run)
        for name in [name for name in self.lives if name[0] == run]:
            self.forget(*name)
        self.audit(actions)

    def forget(self, run: str, model: str) -> None:
        for turn in self.waiting_of(run, model):
            self.waiting.pop(turn)
            self.seen.pop(turn)
        self.orphans.update(self.flying_of(run, model))
        self.orphans.update(turn for turn in self.lapsed if self.is_of(turn, run, model))
        del self.lives[run, model]

    def woke_up(self, now: int, actions: Sequence[Action]) -> None:
        late = [turn for turn, seen in self.seen.items() if seen + TURN_TIMEOUT_S <= now]
        refused = {action.turn for action in actions if isinstance(action, RefuseTurn)}
        assert refused == {turn for turn in late if turn in self.waiting}
        for turn in late:
            where, is_orphan = self.flying.get(turn), turn in self.orphans
            self.ended(turn, now)
            if where is not None:
                self.lapsed[turn] = where
                self.orphans.update([turn] if is_orphan else [])
        old = {
            name
            for name, life in self.lives.items()
            if life.rested_at + RUN_EXPIRY_S <= now and not self.flying_of(*name) and not self.waiting_of(*name)
        }
        for name in old:
            self.forget(*name)
        gone = {run for run, _ in old} - {run for run, _ in self.lives}
        assert {action.run for action in actions if isinstance(action, ForgetRun)} == gone
        for place in self.places.values():
            if place.closed_until is not None and place.closed_until <= now:
                place.closed_until = None
        self.audit(actions)

    def replica_left(self, now: int, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, RefuseTurn):
                offer = self.offers[action.turn]
                assert not any(offer.model in place.spec.models for place in self.places.values())
                self.ended(action.turn, now)
        self.audit(actions)

    def audit(self, actions: Sequence[Action], newcomer: str = "") -> None:
        """Follow the placements in their order; each must be lawful at its moment."""
        for action in actions:
            if isinstance(action, PlaceTurn):
                self.audit_placement(action, newcomer)
                self.served.update(dict.fromkeys(self.parties(action.turn), next(self.numbers)))
            elif isinstance(action, HoldTurn):
                assert not self.is_owed(action.turn), f"{action.turn} came home, where batch has its place, and waits"
                number = next(self.numbers)
                for party in self.parties(action.turn):
                    self.served.setdefault(party, number)
        if not self.waiting:
            in_use = {party for turn in self.flying for party in self.parties(turn)}
            self.served = {party: number for party, number in self.served.items() if party in in_use}

    def parties(self, turn: str) -> tuple[tuple[str, ...], ...]:
        offer = self.offers[turn]
        return (offer.principal,), (offer.principal, offer.caller)

    def audit_placement(self, action: PlaceTurn, newcomer: str) -> None:
        assert action.turn in self.waiting, f"{action.turn} was placed but does not wait"
        offer = self.offers[action.turn]
        place = self.places[action.replica]
        assert place.healthy, f"{action.turn} went to unhealthy {action.replica}"
        assert offer.model in place.spec.models
        assert offer.kind is place.spec.kind
        assert self.only_home(offer) in (None, action.replica), f"{action.turn} left its healthy home"
        returns = self.returns(offer)
        is_owed = action.turn == newcomer and self.is_owed(action.turn)
        before = dict(self.waiting)
        self.waiting.pop(action.turn)
        if self.has_room(action.replica, offer.service_class):
            after, self.waiting = self.waiting, before
            self.audit_turn(action.turn)
            self.waiting = after
        elif offer.shape is TurnShape.ERRAND and action.turn == newcomer:
            self.audit_errand(offer, action.replica)
        else:
            assert is_owed, f"{action.turn} does not fit on {action.replica}"
        self.flying[action.turn] = action.replica
        taken = self.flying_on(action.replica) + self.kept_on(action.replica)
        if returns and place.queues() and taken >= place.most():
            self.awaited.add(action.turn)
        if is_in_run(offer):
            life = self.lives[offer.run, offer.model]
            life.home, life.bound = action.replica, True

    def audit_errand(self, offer: TurnArrived, where: str) -> None:
        """It waits for no room, and goes where least is to do; where nobody wants any, last of all.

        What an engine has from others counts too, and is at most what it reports.
        """
        able = {
            name: place for name, place in self.places.items() if place.healthy and offer.model in place.spec.models
        }
        for name, place in able.items():
            reported = 0 if place.load is None else place.load.running + place.load.waiting
            most = place.closed_until is not None, self.flying_on(name) + reported
            least = able[where].closed_until is not None, self.flying_on(where)
            assert least <= most, f"{offer.turn} went to {where}: {least}, and {name} has at most {most}"

    def audit_turn(self, placed: str) -> None:
        """Nobody with a better claim could have gone instead."""
        for turn in self.waiting:
            if turn != placed and self.claim(turn) < self.claim(placed):
                free = [name for name in self.places if self.may_go(turn, name)]
                assert not free, f"{placed} went out before {turn}, which fits on {free}"

    def claim(self, turn: str) -> tuple[bool, int, float, int, float, int]:
        offer = self.offers[turn]
        principal, caller = (self.served.get(party, math.inf) for party in self.parties(turn))
        flying = [self.offers[other] for other in self.flying]
        return (
            offer.service_class is ServiceClass.BATCH,
            sum(other.principal == offer.principal for other in flying),
            principal,
            sum((other.principal, other.caller) == (offer.principal, offer.caller) for other in flying),
            caller,
            list(self.waiting).index(turn),
        )

    def may_go(self, turn: str, replica: str) -> bool:
        offer, place = self.offers[turn], self.places[replica]
        return (
            place.healthy
            and place.spec.kind is offer.kind
            and offer.model in place.spec.models
            and self.only_home(offer) in (None, replica)
            and self.has_room(replica, offer.service_class)
        )

    def has_room(self, replica: str, service_class: ServiceClass) -> bool:
        place, in_flight = self.places[replica], self.flying_on(replica)
        if place.closed_until is not None:
            return False
        if not in_flight:
            return True
        needed = in_flight
        if service_class is ServiceClass.BATCH:
            needed += self.kept_on(replica)
            if place.queues() and any(self.flying[turn] == replica for turn in self.awaited):
                return False
        if place.width is not None and needed >= place.width:
            return False
        return not place.queues() or needed < place.most()

    def returns(self, offer: TurnArrived) -> bool:
        """Say whether a waiting turn brings an interactive run back from a tool to the only place it may go to."""
        if not is_in_run(offer) or self.only_home(offer) is None:
            return False
        life = self.lives[offer.run, offer.model]
        is_out = life.paused and not self.flying_of(offer.run, offer.model)
        return is_out and life.service_class is ServiceClass.INTERACTIVE

    def is_owed(self, turn: str) -> bool:
        """Say whether a turn that arrives goes home at once although batch turns fill it."""
        offer = self.offers[turn]
        home = self.only_home(offer)
        if home is None or not self.returns(offer):
            return False
        place, on_it = self.places[home], [other for other, where in self.flying.items() if where == home]
        if place.closed_until is not None or (place.width is not None and len(on_it) >= place.width):
            return False
        interactive = [other for other in self.waiting if self.offers[other].service_class is ServiceClass.INTERACTIVE]
        if any(other != turn and self.only_home(self.offers[other]) == home for other in interactive):
            return False
        ours = [other for other in on_it if self.offers[other].service_class is ServiceClass.INTERACTIVE]
        return not place.queues() or len(ours) < place.most()

    def only_home(self, offer: TurnArrived) -> str | None:
        """Return the one replica that the turn may go to, None when it may go anywhere."""
        if not is_in_run(offer):
            return None
        life = self.lives[offer.run, offer.model]
        home = self.places.get(life.home) if life.home is not None and life.bound else None
        pinned = life.paused or self.flying_of(offer.run, offer.model)
        return life.home if pinned and home is not None and home.healthy and offer.model in home.spec.models else None

    def kept_on(self, replica: str) -> int:
        return sum(
            life.home == replica
            and life.bound
            and life.paused
            and life.service_class is ServiceClass.INTERACTIVE
            and not self.flying_of(*name)
            and not self.waiting_of(*name)
            for name, life in self.lives.items()
        )
