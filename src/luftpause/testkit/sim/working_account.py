"""The account of a scheduler with policy `working-set`: what all policies owe, and that nothing idles beside the held.

What fits where depends on what the core has learned, and is proved by its own invariants. Here stands what can be told
from events and orders alone: no turn is lost or served twice, none goes where it is not served, past a closure or a
window, or away from a run under way; and who may begin anywhere does not wait while an engine has nothing of ours,
unless another one has more memory: how much a turn needs is the core's guess.
"""

from luftpause.core.model.ids import ReplicaId
from luftpause.core.model.turns import ServiceClass, TurnShape
from luftpause.core.scheduling.actions import PlaceTurn, RecallTurn
from luftpause.core.scheduling.events import Event, TurnArrived
from luftpause.testkit.sim.account import HELD_TOLERANCE_S, Account
from luftpause.testkit.sim.records import Site


class WorkingSetAccount(Account):
    """Tell it every event with the orders that it led to."""

    def _judge_placement(self, action: PlaceTurn, event: Event, now: float) -> None:
        book = self.book
        waiting = book.waiting.get(action.turn)
        assert waiting is not None, f"{action.turn} was placed but does not wait: served twice, or never offered"
        offer = waiting.offer
        sites = self._sites_for(offer)
        assert action.replica in sites, f"{action.turn} went to {action.replica}; it may go to {sorted(sites)}"
        if offer.shape is not TurnShape.ERRAND:
            site = book.sites[action.replica]
            assert _is_open(site), f"{action.turn} went to {action.replica}, which takes nothing: {site}"
        held_s = now - waiting.arrived_at
        assert abs(action.held_s - held_s) < HELD_TOLERANCE_S, f"{action.turn} waited {held_s}, not {action.held_s}"
        book.place(action.turn, action.replica)

    def _judge_recall(self, action: RecallTurn) -> None:
        """What is asked back is batch, has said nothing, was never asked back before, and makes way for somebody."""
        flight, favoured = self.book.flying.get(action.turn), self.book.waiting.get(action.favours)
        assert flight is not None, f"{action.turn} was asked back, and is not in flight"
        assert flight.replica == action.replica, f"{action.turn} is on {flight.replica}, not on {action.replica}"
        assert flight.offer.service_class is ServiceClass.BATCH, f"{action.turn} was asked back, and is interactive"
        assert not flight.spoke, f"{action.turn} was asked back in the middle of its answer"
        is_first = not flight.asked_back and not flight.offer.recalls
        assert is_first, f"{action.turn} was asked back twice"
        assert favoured is not None, f"{action.turn} was asked back for {action.favours}, which does not wait"
        is_better = favoured.offer.service_class is ServiceClass.INTERACTIVE or favoured.offer.parent is not None
        assert is_better, f"{action.favours} is no better"  # an interactive parent's last child is as urgent as that
        flight.asked_back = True

    def _judge_rest(self) -> None:
        """Nobody who may begin anywhere waits beside an engine that has nothing to do."""
        book = self.book
        idle = [name for name, site in book.sites.items() if site.takes_turns and not site.flying and _is_open(site)]
        for turn, waiting in book.waiting.items() if idle else ():
            if self._asks_on(waiting.offer):
                continue
            beside = [name for name in idle if name in self._largest_for(waiting.offer)]
            assert not beside, f"{turn} waits although {beside[0]} has nothing to do"

    def _largest_for(self, offer: TurnArrived) -> list[ReplicaId]:
        """Return the replicas that a turn may go to but for those that have less memory than another of them."""
        memory = {name: site.memory for name, site in self.book.sites.items()}
        most = max((memory[name] or 0 for name in self._sites_for(offer)), default=0)
        return [name for name in self.book.sites_for(offer) if memory[name] is None or memory[name] == most]

    def _asks_on(self, offer: TurnArrived) -> bool:
        """Say whether a turn comes after an answer of its run whose place may be kept: then it may wait at home."""
        life = self.book.lives.get(offer.part)
        home = None if life is None or life.home is None or not life.replied else self.book.sites.get(life.home)
        return life is not None and home is not None and home.takes_turns and home.life == life.home_life

    def _owed_home(self, offer: TurnArrived) -> ReplicaId | None:
        return None

    def _sites_for(self, offer: TurnArrived) -> list[ReplicaId]:
        """Return the replicas that a turn may go to: a paused run may move once its place is not kept any more."""
        pinned, life = self.book.pinned_to(offer), self.book.lives.get(offer.part)
        if pinned is not None and life is not None and life.flying:
            return [pinned]
        return [name for name, site in self.book.sites.items() if site.takes_turns and site.serves(offer)]


def _is_open(site: Site) -> bool:
    if site.closed_until is not None:
        return False
    return site.narrow is None or site.flying < site.narrow.width
