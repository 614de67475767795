"""An account of the scheduler, kept from its events and orders alone: is each order lawful, and is none missing?

Written from the rules, without the core's indices or code: everything is looked up by a scan. It raises at the first
order that loses a turn, serves one twice, overfills a replica, moves a pinned run, jumps the fair order, or leaves a
turn waiting beside room for it. What an event means is told by `book.py`; this module judges what was ordered.

Expiry is exact on whole seconds only, because the core may round a deadline up to the next one.
"""

import math
from collections.abc import Sequence

from luftpause.core.model.ids import ReplicaId, TurnId
from luftpause.core.model.refusals import RefusalReason
from luftpause.core.model.turns import ServiceClass, TurnShape
from luftpause.core.scheduling.actions import Action, ForgetRun, HoldTurn, PlaceTurn, RecallTurn, RefuseTurn
from luftpause.core.scheduling.events import Event, TurnArrived
from luftpause.core.scheduling.residency.actions import DropKv, LoadModel, UnloadModel
from luftpause.core.scheduling.state import Limits
from luftpause.testkit.sim.book import Book
from luftpause.testkit.sim.records import Due, Site, Waiting

HELD_TOLERANCE_S = 1e-6


class Account:
    """Tell it every event with the orders that it led to. `book` is what must be true now."""

    def __init__(self, limits: Limits) -> None:
        self.book = Book(limits)

    def take(self, event: Event, now: float, actions: Sequence[Action]) -> None:
        """Take in an event and judge what was ordered.

        Raises:
            AssertionError: something is wrong; the message says what.
        """
        book = self.book
        if isinstance(event, TurnArrived):
            was_given_up = event.turn in book.lapsed
            book.renew(event.turn, now)
            if book.is_open(event.turn):
                self._judge_repetition(event, actions[:1] if was_given_up else actions)
                for action in actions[1:]:  # its run is at work again, where others of it may go on at once
                    assert isinstance(action, PlaceTurn), f"an offer made again led to {action}"
                    self._judge_placement(action, event, now)
                return
            if not book.is_served(event):
                _only_refusal(actions, event.turn, RefusalReason.UNKNOWN_MODEL)
                return
        due = book.take(event, now)
        self._judge(event, due, now, actions)
        self._judge_rest()
        book.settle()

    def _judge(self, event: Event, due: Due, now: float, actions: Sequence[Action]) -> None:
        """Follow the orders in their sequence; each must be lawful at its moment, and those that are due must come."""
        refusals = dict(due.refusals)
        forgets = dict.fromkeys(due.forgets)
        for action in actions:
            match action:
                case PlaceTurn():
                    self._judge_placement(action, event, now)
                case HoldTurn():
                    mine = isinstance(event, TurnArrived) and event.turn == action.turn
                    assert mine, f"{action.turn} is told to wait out of turn"
                    assert action.turn in self.book.waiting, f"{action.turn} is told to wait and does not"
                    home = self._owed_home(self.book.waiting[action.turn].offer)
                    assert home is None, f"{action.turn} comes back to {home}, where batch has its place, and waits"
                    able = self.book.sites_for(self.book.waiting[action.turn].offer)
                    is_errand = self.book.waiting[action.turn].offer.shape is TurnShape.ERRAND
                    assert not (is_errand and able), f"{action.turn} needs no room, and waits beside {able}"
                    self.book.queue(action.turn)
                case RefuseTurn():
                    expected = refusals.pop(action.turn, None)
                    assert action.why.reason is expected, f"{action.turn} was refused: {action.why}"
                case RecallTurn():
                    self._judge_recall(action)
                case ForgetRun():
                    assert action.run in forgets, f"{action.run} was forgotten too early"
                    del forgets[action.run]
                case LoadModel() | UnloadModel() | DropKv():
                    raise AssertionError(f"this account knows no launchers: {action}")
        assert not refusals, f"never refused: {refusals}"
        assert not forgets, f"never forgotten: {list(forgets)}"
        if isinstance(event, TurnArrived):
            told = [action for action in actions if isinstance(action, PlaceTurn | HoldTurn | RefuseTurn)]
            answers = [action for action in told if action.turn == event.turn]
            assert len(answers) == 1, f"one offer, one answer: {answers}"

    def _judge_recall(self, action: RecallTurn) -> None:
        raise AssertionError(f"this policy takes nothing back: {action}")

    def _judge_repetition(self, event: TurnArrived, actions: Sequence[Action]) -> None:
        """The same turn is offered again: the same answer, and nobody moves."""
        assert len(actions) == 1, f"an offer made again led to {actions}"
        flight = self.book.flying.get(event.turn)
        match actions[0]:
            case PlaceTurn(turn=turn, replica=replica):
                assert turn == event.turn
                assert flight is not None, f"{turn} waits and was placed for being offered again"
                assert replica == flight.replica, f"{turn} runs on {flight.replica}, not on {replica}"
            case HoldTurn(turn=turn):
                assert turn == event.turn
                assert flight is None, f"{turn} runs and was told to wait"
            case other:
                raise AssertionError(f"{event.turn} is open and led to {other}")

    def _judge_placement(self, action: PlaceTurn, event: Event, now: float) -> None:
        book = self.book
        waiting = book.waiting.get(action.turn)
        assert waiting is not None, f"{action.turn} was placed but does not wait: served twice, or never offered"
        offer = waiting.offer
        sites = book.sites_for(offer)
        assert action.replica in sites, f"{action.turn} went to {action.replica}; it may go to {sorted(sites)}"
        site = book.sites[action.replica]
        newcomer = isinstance(event, TurnArrived) and event.turn == action.turn
        if newcomer and offer.shape is TurnShape.ERRAND:
            able = {name: book.sites[name] for name in sites}
            ranks = {name: (each.closed_until is not None, each.flying + each.foreign) for name, each in able.items()}
            assert ranks[action.replica] == min(ranks.values()), f"{action.turn} went to {action.replica}: {ranks}"
        elif not self._has_room(site, action.replica, offer.service_class):
            owed = newcomer and self._owed_home(offer) == action.replica
            assert owed, f"no room on {action.replica}: {site}"
        else:
            self._judge_order(waiting, action.replica, event)
        held_s = now - waiting.arrived_at
        assert abs(action.held_s - held_s) < HELD_TOLERANCE_S, f"{action.turn} waited {held_s}, not {action.held_s}"
        book.place(action.turn, action.replica)

    def _judge_order(self, chosen: Waiting, replica: ReplicaId, event: Event) -> None:
        """Nobody who could have gone there was ahead. Who has just arrived comes after those who waited."""
        rank = self._rank(chosen)
        newcomer = event.turn if isinstance(event, TurnArrived) else None
        for turn, other in self.book.waiting.items():
            if turn != newcomer and self._rank(other) < rank and replica in self.book.sites_for(other.offer):
                raise AssertionError(f"{chosen.offer.turn} went to {replica} ahead of {other.offer.turn}")

    def _rank(self, waiting: Waiting) -> tuple[bool, int, float, int, float, float, int]:
        offer, book = waiting.offer, self.book
        payer = offer.principal, offer.caller
        return (
            offer.service_class is ServiceClass.BATCH,
            book.flying_by_principal[offer.principal],
            book.served.get(offer.principal, math.inf),
            book.flying_by_payer[payer],
            book.served.get(payer, math.inf),
            waiting.arrived_at,
            waiting.number,
        )

    def _has_room(self, site: Site, name: ReplicaId, service_class: ServiceClass) -> bool:
        if site.closed_until is not None:
            return False
        if site.flying == 0:
            return True
        most = site.most
        if service_class is ServiceClass.BATCH and most is not None and self._is_batch_barred(name):
            return False
        kept = self.book.kept_on(name) if service_class is ServiceClass.BATCH else 0
        widths = [] if most is None else [most]
        widths += [] if site.narrow is None else [site.narrow.width]
        return all(site.flying + kept < width for width in widths)

    def _is_batch_barred(self, name: ReplicaId) -> bool:
        """Say whether an interactive run that came back to a full replica has no first token yet."""
        return any(flight.replica == name and flight.bars_batch for flight in self.book.flying.values())

    def _owed_home(self, offer: TurnArrived) -> ReplicaId | None:
        """Return the home that must take an interactive run's return at once, though batch turns fill it.

        Not while it is closed or its width is used up, nor where an interactive turn waits for it already.
        """
        book, name = self.book, self.book.pinned_to(offer)
        if name is None or book.returns_to(offer) != name:
            return None
        site = book.sites[name]
        if site.closed_until is not None or (site.narrow is not None and site.flying >= site.narrow.width):
            return None
        others = [other.offer for turn, other in book.waiting.items() if turn != offer.turn]
        if any(other.service_class is ServiceClass.INTERACTIVE and book.pinned_to(other) == name for other in others):
            return None
        flights = [flight for flight in book.flying.values() if flight.replica == name]
        batch = sum(flight.offer.service_class is ServiceClass.BATCH for flight in flights)
        return name if site.most is None or site.flying - batch < site.most else None

    def _judge_rest(self) -> None:
        """Nobody waits beside room."""
        book = self.book
        if not book.waiting:
            return
        room = {
            (name, service_class)
            for name, site in book.sites.items()
            for service_class in ServiceClass
            if site.takes_turns and self._has_room(site, name, service_class)
        }
        for turn, waiting in book.waiting.items() if room else ():
            offer = waiting.offer
            beside = [name for name in book.sites_for(offer) if (name, offer.service_class) in room]
            assert not beside, f"{turn} waits although {beside[0]} has room"


def _only_refusal(actions: Sequence[Action], turn: TurnId, reason: RefusalReason) -> None:
    assert len(actions) == 1, f"a refused offer led to {actions}"
    action = actions[0]
    assert isinstance(action, RefuseTurn), f"{turn} cannot be served and led to {action}"
    assert (action.turn, action.why.reason) == (turn, reason)
