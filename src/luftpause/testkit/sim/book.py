"""What must be true of a scheduler's turns, runs and replicas after each event, by the rules.

The facts behind `account.py`, kept in plain tables and looked up by scanning. Judges nothing: it says what the rules
make of an event, and which refusals and forgotten runs must follow from it.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import count
from typing import assert_never

from luftpause.core.model.ids import CallerId, ModelName, PeerId, PrincipalId, ReplicaId, RunId, TurnId
from luftpause.core.model.refusals import RefusalReason
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.events import (
    AnswerGrew,
    Event,
    FirstTokenSeen,
    KnownRun,
    MemoryRestored,
    OpenTurn,
    PeerLost,
    PeerResynced,
    ReplicaAdded,
    ReplicaProbed,
    ReplicaRemoved,
    RunEnded,
    RunPhase,
    TurnAbandoned,
    TurnArrived,
    TurnFailed,
    TurnFinished,
    TurnReport,
    TurnReturned,
    TurnsRenewed,
    TurnStays,
    WokeUp,
)
from luftpause.core.scheduling.state import Limits
from luftpause.testkit.sim.narrow import halved
from luftpause.testkit.sim.records import Due, Flight, Life, Site, Waiting
from luftpause.testkit.sim.sites import adopted, declared, noted, probed, removed

OLDEST_S = 1e9
"""No age that a peer tells counts for more."""


class Book:
    """The tables. Only `take`, `queue`, `place`, `renew` and `settle` change them.

    `served` says when each principal, and each of its callers, was served last: a number that grows. It is forgotten
    when nothing of theirs is in flight and nobody waits; who waits without it counts as served when it began to.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.sites: dict[ReplicaId, Site] = {}
        self.lives: dict[tuple[RunId, ModelName], Life] = {}
        self.flying: dict[TurnId, Flight] = {}
        self.waiting: dict[TurnId, Waiting] = {}
        self.lapsed: dict[TurnId, Flight] = {}
        self.flying_by_principal: Counter[PrincipalId] = Counter()
        self.flying_by_payer: Counter[tuple[PrincipalId, CallerId]] = Counter()
        self.served: dict[PrincipalId | tuple[PrincipalId, CallerId], int] = {}
        self._numbers = count()

    def is_open(self, turn: TurnId) -> bool:
        """Say whether a turn is in flight or held."""
        return turn in self.flying or turn in self.waiting

    def is_served(self, offer: TurnArrived) -> bool:
        """Say whether any declared replica, healthy or not, is for such turns."""
        return any(site.serves(offer) for site in self.sites.values())

    def sites_for(self, offer: TurnArrived) -> list[ReplicaId]:
        """Return the replicas that a turn may go to, room or no room."""
        home = self.pinned_to(offer)
        if home is not None:
            return [home]
        return [name for name, site in self.sites.items() if site.takes_turns and site.serves(offer)]

    def pinned_to(self, offer: TurnArrived) -> ReplicaId | None:
        """Return the only replica that a turn may go to; None when it may go to any that serves it."""
        life = self._life_of(offer)
        if life is None or not (life.flying or life.paused):
            return None
        home = self._bound_home(life)
        return life.home if home is not None and home.takes_turns and home.serves(offer) else None

    def kept_on(self, name: ReplicaId) -> int:
        """Return how many interactive runs are out on a tool and will come back to a replica."""
        return sum(
            life.home == name
            and life.paused
            and life.service_class is ServiceClass.INTERACTIVE
            and not life.flying
            and not life.waiting
            and self._bound_home(life) is not None
            for life in self.lives.values()
        )

    def returns_to(self, offer: TurnArrived) -> ReplicaId | None:
        """Return the home that a turn that waits would bring its interactive run back to from a tool."""
        life = self._life_of(offer)
        if life is None or life.service_class is not ServiceClass.INTERACTIVE or life.flying or not life.paused:
            return None
        return life.home if self._bound_home(life) is not None else None

    def first_expiry(self) -> float | None:
        """Return when the first turn or run is over unless something happens before."""
        turn_s, run_s = self.limits.turn_timeout_s, self.limits.run_idle_expiry_s
        ends = [flight.seen_at + turn_s for flight in self.flying.values()]
        ends += [waiting.seen_at + turn_s for waiting in self.waiting.values()]
        ends += [life.rested_at + run_s for life in self.lives.values() if not life.flying and not life.waiting]
        return min(ends, default=None)

    def renew(self, turn: TurnId, now: float) -> None:
        """Note a sign of life of an open turn. One that was given up is charged again."""
        if turn in self.lapsed:
            self._revive(turn, now)
        elif turn in self.flying:
            self.flying[turn].seen_at = now
        elif turn in self.waiting:
            self.waiting[turn].seen_at = now

    def queue(self, turn: TurnId) -> None:
        """Note that a new turn is told to wait."""
        offer, number = self.waiting[turn].offer, next(self._numbers)
        self.served.setdefault(offer.principal, number)
        self.served.setdefault((offer.principal, offer.caller), number)

    def settle(self) -> None:
        """End an event: with nobody waiting, those who have nothing in flight are forgotten."""
        if not self.waiting:
            offers = [flight.offer for flight in self.flying.values()]
            in_use = {offer.principal for offer in offers} | {(offer.principal, offer.caller) for offer in offers}
            self.served = {party: number for party, number in self.served.items() if party in in_use}

    def place(self, turn: TurnId, replica: ReplicaId) -> None:
        """Put a waiting turn on a replica."""
        waiting = self.waiting.pop(turn)
        comes_back = self.returns_to(waiting.offer) == replica
        life = self._life_of(waiting.offer)
        if life is not None:
            life.waiting -= 1
        self._fly(waiting.offer, replica, waiting.seen_at)
        site = self.sites[replica]
        if comes_back and site.most is not None:
            self.flying[turn].bars_batch = site.flying + self.kept_on(replica) >= site.most

    def take(self, event: Event, now: float) -> Due:
        """Take in an event, but no order; an offer must be new, and served by someone."""
        due = Due()
        if isinstance(event, TurnReport):
            self._take_in_report(event, now)
            return due
        match event:
            case TurnArrived():
                self._wait(event, now)
            case RunEnded():
                self._end_run(event.run, due)
            case ReplicaAdded() | ReplicaRemoved() | ReplicaProbed():
                self._take_in_site(event, now, due)
            case PeerResynced() | PeerLost():
                self._take_in_peer(event, now)
            case MemoryRestored():
                assert not event.replicas, "the book keeps no past of replicas"
            case WokeUp():
                self._expire(now, due)
                for site in self.sites.values():
                    if site.closed_until is not None and site.closed_until <= now:
                        site.closed_until = None
            case _:
                raise AssertionError(f"this book knows no launchers: {event}")
        return due

    def _revive(self, turn: TurnId, now: float) -> None:
        lapsed = self.lapsed.pop(turn)
        adopted(self._note(lapsed.replica))
        life = self._life_of(lapsed.offer) if lapsed.in_run else None
        home = None if life is None else (life.home, life.home_life)
        self._fly(lapsed.offer, lapsed.replica, now, in_run=lapsed.in_run)
        if life is not None and home is not None:
            life.home, life.home_life = home

    def _take_in_report(self, report: TurnReport, now: float) -> None:
        for turn in report.turns if isinstance(report, TurnsRenewed) else (report.turn,):
            self.renew(turn, now)
        match report:
            case FirstTokenSeen():
                if report.turn in self.flying:
                    self.flying[report.turn].bars_batch, self.flying[report.turn].spoke = False, True
            case TurnReturned():
                self._return(report.turn, now)
            case TurnsRenewed() | TurnStays() | AnswerGrew():
                pass
            case TurnFinished():
                self._end(report.turn, now, paused=bool(report.tool_calls), answered=True)
            case TurnFailed():
                self._leave_alone(report, now)
                self._end(report.turn, now)
            case TurnAbandoned():
                self._end(report.turn, now)
            case _:
                assert_never(report)

    def _leave_alone(self, report: TurnFailed, now: float) -> None:
        flight, seconds = self.flying.get(report.turn), report.retry_after_s or 0.0
        site = None if flight is None else self.sites[flight.replica]
        if site is None or not site.declared or not seconds > 0.0:
            return
        if site.closed_until is None and site.healthy:
            site.narrow = halved(site.narrow, site.flying)
        site.closed_until = max(site.closed_until or 0.0, now + min(seconds, self.limits.retry_after_s_max))

    def _bound_home(self, life: Life) -> Site | None:
        site = None if life.home is None else self.sites.get(life.home)
        return site if site is not None and site.life == life.home_life else None

    def _life_of(self, offer: TurnArrived) -> Life | None:
        return self.lives.get((offer.run, offer.model)) if _is_in_run(offer) else None

    def _wait(self, offer: TurnArrived, now: float) -> None:
        arrived_at = now - min(max(0.0, offer.age_s), OLDEST_S)
        self.waiting[offer.turn] = Waiting(offer, arrived_at, next(self._numbers), now)
        if _is_in_run(offer):
            name = offer.run, offer.model
            life = self.lives.get(name)
            if life is None:
                life = self.lives[name] = Life(offer.service_class, offer.principal, offer.caller, now)
            life.service_class, life.caller = offer.service_class, offer.caller
            life.waiting += 1

    def _fly(self, offer: TurnArrived, replica: ReplicaId, seen_at: float, *, in_run: bool = True) -> None:
        life = self._life_of(offer) if in_run else None
        self.flying[offer.turn] = Flight(offer, replica, life is not None, seen_at)
        site = self.sites[replica]
        site.flying += 1
        site.peak = max(site.peak, site.flying)
        self.flying_by_principal[offer.principal] += 1
        self.flying_by_payer[offer.principal, offer.caller] += 1
        number = next(self._numbers)
        self.served[offer.principal] = self.served[offer.principal, offer.caller] = number
        if life is not None:
            life.flying += 1
            life.home, life.home_life = replica, site.life

    def _end(self, turn: TurnId, now: float, *, paused: bool = False, answered: bool = False) -> None:
        waiting = self.waiting.pop(turn, None)
        if waiting is not None:
            life = self._life_of(waiting.offer)
            if life is not None:
                life.waiting -= 1
                life.rested_at = now
            return
        flight = self.flying.pop(turn, None)
        if flight is None:
            return
        offer, site = flight.offer, self.sites[flight.replica]
        if answered and site.narrow is not None and site.closed_until is None:
            site.narrow = site.narrow.answered(site.flying + self.kept_on(flight.replica))
        self._land(flight, site)
        life = self.lives[offer.run, offer.model] if flight.in_run else None
        if life is None:
            return
        life.flying -= 1
        life.paused, life.replied, life.rested_at = paused, answered and not paused, now
        if answered and not life.flying and site.declared:
            life.home, life.home_life = flight.replica, site.life

    def _return(self, turn: TurnId, now: float) -> None:
        """Its engine has it no more: its run is what it was before, paused or not."""
        flight = self.flying.pop(turn, None)
        if flight is None:
            return
        self._land(flight, self.sites[flight.replica])
        if flight.in_run:
            life = self.lives[flight.offer.run, flight.offer.model]
            life.flying -= 1
            life.rested_at = now

    def _land(self, flight: Flight, site: Site) -> None:
        offer = flight.offer
        site.flying -= 1
        if not site.flying and not site.declared and site.spec is not None:
            del self.sites[flight.replica]
        self.flying_by_principal[offer.principal] -= 1
        self.flying_by_payer[offer.principal, offer.caller] -= 1

    def _end_run(self, run: RunId, due: Due) -> None:
        for name in [name for name in self.lives if name[0] == run]:
            self._forget(*name, due)

    def _forget(self, run: RunId, model: ModelName, due: Due) -> None:
        """Forget what a run has with a model; without a last one it is forgotten altogether."""
        del self.lives[run, model]
        for turn, waiting in list(self.waiting.items()):
            if (waiting.offer.run, waiting.offer.model) == (run, model) and _is_in_run(waiting.offer):
                del self.waiting[turn]
                due.refusals[turn] = RefusalReason.RUN_ENDED
        for flight in (*self.flying.values(), *self.lapsed.values()):
            if (flight.offer.run, flight.offer.model) == (run, model):
                flight.in_run = False
        if not any(name == run for name, _ in self.lives):
            due.forgets.append(run)

    def _take_in_site(self, event: ReplicaAdded | ReplicaRemoved | ReplicaProbed, now: float, due: Due) -> None:
        match event:
            case ReplicaAdded(spec=spec):
                declared(self.sites, spec, next(self._numbers))
            case ReplicaRemoved(replica=name):
                removed(self.sites, name, next(self._numbers))
            case ReplicaProbed():
                site = self.sites.get(event.replica)
                if site is not None and site.declared:
                    probed(site, event, now, self.limits, next(self._numbers))
        for turn, waiting in list(self.waiting.items()):
            if not self.is_served(waiting.offer):
                self._end(turn, now)
                due.refusals[turn] = RefusalReason.UNKNOWN_MODEL

    def _take_in_peer(self, event: PeerResynced | PeerLost, now: float) -> None:
        if isinstance(event, PeerLost):
            self._end_all_of(event.peer, (), now)
            return
        self._end_all_of(event.peer, [told.turn for told in event.turns], now)
        for turn in event.turns:
            self._adopt_turn(event.peer, turn, now)
        for run in event.runs:
            self._adopt_run(run, now)

    def _end_all_of(self, peer: PeerId, but: Iterable[TurnId], now: float) -> None:
        self.lapsed = {turn: lapsed for turn, lapsed in self.lapsed.items() if lapsed.offer.peer != peer}
        kept = frozenset(but)
        offers = [flight.offer for flight in self.flying.values()]
        offers += [waiting.offer for waiting in self.waiting.values()]
        for offer in offers:
            if offer.peer == peer and offer.turn not in kept:
                self._end(offer.turn, now)

    def _adopt_turn(self, peer: PeerId, told: OpenTurn, now: float) -> None:
        if told.turn in self.waiting:
            self._end(told.turn, now)
        if told.turn in self.flying:
            self.renew(told.turn, now)
            return
        offer = TurnArrived(
            turn=told.turn,
            peer=peer,
            run=told.run,
            model=told.model,
            kind=told.kind,
            service_class=told.service_class,
            caller=told.caller,
            principal=told.principal,
            shape=told.shape,
        )
        self.lapsed.pop(told.turn, None)
        adopted(self._note(told.replica))
        if _is_in_run(told) and (told.run, told.model) not in self.lives:
            self.lives[told.run, told.model] = Life(told.service_class, told.principal, told.caller, now)
        self._fly(offer, told.replica, now)

    def _adopt_run(self, told: KnownRun, now: float) -> None:
        rested_at = now - min(max(0.0, told.age_s), OLDEST_S)
        name = told.run, told.model
        life = self.lives.get(name)
        if life is not None and (life.flying or life.waiting or life.rested_at >= rested_at):
            return
        self.lives[name] = Life(
            told.service_class,
            told.principal,
            told.caller,
            rested_at,
            paused=told.phase is RunPhase.PAUSED,
            home=told.replica,
            home_life=self._note(told.replica).life,
        )

    def _note(self, replica: ReplicaId) -> Site:
        return noted(self.sites, replica, next(self._numbers))

    def _expire(self, now: float, due: Due) -> None:
        turn_s, run_s = self.limits.turn_timeout_s, self.limits.run_idle_expiry_s
        for turn in [turn for turn, waiting in self.waiting.items() if waiting.seen_at + turn_s <= now]:
            due.refusals[turn] = RefusalReason.EXPIRED
            self._end(turn, now)
        for turn, flight in [*self.flying.items()]:
            if flight.seen_at + turn_s <= now:
                self._end(turn, now)
                self.lapsed[turn] = flight
        for name, life in list(self.lives.items()):
            if not life.flying and not life.waiting and life.rested_at + run_s <= now:
                self._forget(*name, due)


def _is_in_run(turn: TurnArrived | OpenTurn) -> bool:
    return turn.kind is ReplicaKind.GENERATIVE and turn.shape.in_run
