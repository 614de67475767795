"""Random lives of a whole scheduler, with its invariants and an independent account checked after each step."""

from typing import cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from core.scheduling.book_places import SLOW_START, Place
from core.scheduling.bookkeeper import Bookkeeper
from core.scheduling.builders import World, arrived, failed, finished, open_turn, probed, spec
from luftpause.core.model.ids import PeerId, ReplicaId, RunId, TurnId
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.model.turns import TurnShape
from luftpause.core.scheduling.actions import Action, PlaceTurn
from luftpause.core.scheduling.events import (
    FirstTokenSeen,
    PeerLost,
    PeerResynced,
    ReplicaAdded,
    ReplicaRemoved,
    RunEnded,
    TurnAbandoned,
    TurnsRenewed,
    WokeUp,
)
from luftpause.core.scheduling.state import Limits

SPECS = {
    "a": spec("a", "m"),
    "b": spec("b", "m", "n"),
    "c": spec("c", "n"),
    "s": spec("s", "label", kind=ReplicaKind.SINGLE_PASS),
}
turns = st.integers(0, 40)
runs = st.sampled_from(["r0", "r1", "r2", "r3", "r4"])
replicas = st.sampled_from(sorted(SPECS))


class SchedulerLife(RuleBasedStateMachine):
    """`World.tell` proves the state sound; the bookkeeper proves what was ordered lawful."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(limits=Limits(slow_start=SLOW_START))
        self.book = Bookkeeper()

    @property
    def now(self) -> int:
        return int(self.world.now)

    @initialize()
    def start(self) -> None:
        for name in ("a", "b", "s"):
            self.add(name)
            self.probe(name, running=2, waiting=None)

    @rule(
        turn=turns,
        run=runs,
        batch=st.booleans(),
        payer=st.sampled_from(["Ax", "Ay", "Bx", "By"]),
        what=st.sampled_from(["m", "m", "n", "nope", "label", "m alone", "n alone", "m errand", "n errand"]),
    )
    def arrive(self, turn: int, run: str, batch: bool, payer: str, what: str) -> None:
        model, _, shape = what.partition(" ")
        kind = ReplicaKind.SINGLE_PASS if model == "label" else ReplicaKind.GENERATIVE
        offer = arrived(
            f"t{turn}",
            run,
            batch=batch,
            principal=payer[0],
            caller=payer[1],
            model=model,
            kind=kind,
            peer="p" if turn % 2 else "q",
            shape=TurnShape(shape or "in-run"),
        )
        known = self.book.offers.get(offer.turn)
        if known is not None and (self.book.is_open(offer.turn) or offer.turn in self.book.lapsed):
            offer = known
        self.book.arrived(offer, self.now, self.world.tell(offer))

    @rule(turn=turns, tools=st.lists(st.sampled_from(["look", "wiki__search", "mcp__wiki__search", "ask"]), max_size=2))
    def finish(self, turn: int, tools: list[str]) -> None:
        self.book.revive(f"t{turn}", self.now)
        actions = self.world.tell(finished(f"t{turn}", tools=tools))
        self.book.answered(f"t{turn}")
        self.book.ended(f"t{turn}", self.now, tools=bool(tools), answered=True)
        self.only_placements(actions)

    @rule(turn=turns, leave_alone_s=st.sampled_from([None, 1, 250]))
    def fail(self, turn: int, leave_alone_s: float | None) -> None:
        self.book.revive(f"t{turn}", self.now)
        actions = self.world.tell(failed(f"t{turn}", retry_after_s=leave_alone_s))
        self.book.refused(f"t{turn}", self.now, leave_alone_s)
        self.book.ended(f"t{turn}", self.now)
        self.only_placements(actions)

    @rule(turn=turns)
    def abandon(self, turn: int) -> None:
        self.book.revive(f"t{turn}", self.now)
        actions = self.world.tell(TurnAbandoned(turn=TurnId(f"t{turn}")))
        self.book.ended(f"t{turn}", self.now)
        self.only_placements(actions)

    @rule(turn=turns, first_token=st.booleans())
    def show_life(self, turn: int, first_token: bool) -> None:
        name = TurnId(f"t{turn}")
        self.book.revive(name, self.now)
        actions = self.world.tell(FirstTokenSeen(turn=name) if first_token else TurnsRenewed(turns=(name,)))
        if self.book.is_open(name):
            self.book.seen[name] = self.now
        if first_token:
            self.book.awaited.discard(name)
        self.only_placements(actions)

    @rule(seconds=st.sampled_from([1, 250, 599, 600, 1800]), alive=st.booleans())
    def pass_time(self, seconds: int, alive: bool) -> None:
        self.world.later(seconds)
        if alive:
            self.world.tell(TurnsRenewed(turns=tuple(TurnId(turn) for turn in self.book.seen)))
            self.book.seen = dict.fromkeys(self.book.seen, self.now)
        self.book.woke_up(self.now, self.world.tell(WokeUp()))

    @rule(run=runs)
    def end_run(self, run: str) -> None:
        self.book.run_ended(run, self.world.tell(RunEnded(run=RunId(run))))

    @rule(name=replicas, running=st.integers(0, 5), waiting=st.none() | st.integers(0, 2))
    def probe(self, name: str, running: int, waiting: int | None) -> None:
        event = probed(name, running, waiting)
        actions = self.world.tell(event)
        if place := self.book.places.get(name):
            place.probed(event.load)
        self.only_placements(actions)

    @rule(name=replicas)
    def fall_ill(self, name: str) -> None:
        actions = self.world.tell(probed(name, healthy=False))
        if place := self.book.places.get(name):
            if place.healthy:
                self.book.unbind(name)
            place.fell_ill()
        self.only_placements(actions)

    @rule(name=replicas)
    def add(self, name: str) -> None:
        self.book.places.setdefault(name, Place(spec=SPECS[name]))
        self.only_placements(self.world.tell(ReplicaAdded(spec=SPECS[name])))

    @rule(name=st.sampled_from(["a", "b", "c"]))
    def remove(self, name: str) -> None:
        if self.book.places.pop(name, None):
            self.book.unbind(name)
        self.book.replica_left(self.now, self.world.tell(ReplicaRemoved(replica=ReplicaId(name))))

    @rule(peer=st.sampled_from("pq"), keep=st.integers(1, 3))
    def resync(self, peer: str, keep: int) -> None:
        """The peer names some of its turns in flight; the others, and all held ones, are over."""
        own = sorted(turn for turn in self.book.seen if self.book.offers[turn].peer == peer)
        flying = [turn for turn in own if turn in self.book.flying]
        named = [turn for number, turn in enumerate(flying) if number % keep == 0]
        told = tuple(open_turn(turn, self.book.offers[turn].run, self.book.flying[turn]) for turn in named)
        actions = self.world.tell(PeerResynced(peer=PeerId(peer), turns=told, runs=()))
        self.book.forget_lapsed(peer)
        self.over([turn for turn in own if turn not in named])
        self.book.seen.update(dict.fromkeys(named, self.now))
        self.only_placements(actions)

    @rule(peer=st.sampled_from("pq"))
    def lose(self, peer: str) -> None:
        own = sorted(turn for turn in self.book.seen if self.book.offers[turn].peer == peer)
        actions = self.world.tell(PeerLost(peer=PeerId(peer)))
        self.book.forget_lapsed(peer)
        self.over(own)
        self.only_placements(actions)

    def over(self, gone: list[str]) -> None:
        for turn in gone:
            self.book.ended(turn, self.now)

    def only_placements(self, actions: tuple[Action, ...]) -> None:
        assert all(isinstance(action, PlaceTurn) for action in actions), actions
        self.book.audit(actions)

    def teardown(self) -> None:
        """No turn is lost: once every replica is well, open and has answered what it had, nobody is left waiting."""
        for name in self.book.places:
            self.probe(name, running=0, waiting=0)
        self.pass_time(250, alive=True)
        while self.book.waiting and self.book.flying:
            for turn in list(self.book.flying):
                self.finish(int(turn[1:]), tools=0)
        assert not self.book.waiting
        assert not self.world.state.held
        assert set(self.world.state.turns) == set(self.book.flying)


TestSchedulerLife = cast("type[RuleBasedStateMachine]", SchedulerLife).TestCase
TestSchedulerLife.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
