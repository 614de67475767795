"""A scheduler's worst days, drawn from a seed: mostly a lively pool, and between that everything that may go wrong.

Events are legal and illegal: duplicates, late ones, ids that nobody knows, replicas that flap, are declared anew or
taken away, probes that lie, dataplanes that leave or come back with wild claims, ages and waits that are no numbers,
deadlines missed or looked at in vain, and now and then a scheduler that loses its memory. Each decision is audited by
an account that does not know the core.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from luftpause.core.model.charges import Charge
from luftpause.core.model.ids import (
    CallerId,
    Instant,
    ModelName,
    PeerId,
    PrincipalId,
    ReplicaId,
    RunId,
    ToolCallId,
    ToolName,
    TurnId,
)
from luftpause.core.model.replicas import Endpoint, EngineKind, Load, ReplicaKind, ReplicaSpec
from luftpause.core.model.turns import ServiceClass, TurnShape, Usage
from luftpause.core.scheduling.actions import Action, PlaceTurn, RecallTurn
from luftpause.core.scheduling.decide import decide, next_deadline
from luftpause.core.scheduling.events import (
    AnswerGrew,
    Event,
    FirstTokenSeen,
    KnownRun,
    KnownTool,
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
    TurnReturned,
    TurnsRenewed,
    TurnStays,
    WokeUp,
)
from luftpause.core.scheduling.invariants import check
from luftpause.core.scheduling.state import Limits, State, empty_state
from luftpause.core.scheduling.tool_history import BUCKETS
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.testkit.sim.account import Account
from luftpause.testkit.sim.working_account import WorkingSetAccount

LIMITS = Limits(turn_timeout_s=120.0, run_idle_expiry_s=300.0)
WORKING_SET = replace(LIMITS, working_set=WorkingSetLimits())
CALL = ToolCallId("call")
CHECK_EVERY = 50
RUNS = 40
OPEN_MAX = 60
REPLICAS = tuple(ReplicaId(name) for name in ("a", "b", "c", "d", "s"))
PEERS = tuple(PeerId(name) for name in ("p", "q"))
MODELS = tuple(ModelName(name) for name in ("m", "n"))
PRINCIPALS = tuple(PrincipalId(name) for name in ("alice", "bob"))
TOOLS = ((), (ToolName("look"),), (ToolName("wiki__search"), ToolName("look")), (ToolName("mcp__wiki__search"),))
CALLERS = tuple(CallerId(name) for name in ("x", "y", "z"))

AGES = (0.0, 0.0, 0.0, 7.0, 400.0, -3.0, math.inf, -math.inf, math.nan)
WAITS = (None, None, 1.0, 20.0, 1e6, -1.0, math.inf, math.nan)

Tamper = Callable[[Event, tuple[Action, ...]], tuple[Action, ...]]


def as_ordered(_: Event, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    return actions


class Chaos:
    """Tells a scheduler what it draws. `tamper` may falsify the orders before they are audited."""

    def __init__(self, seed: int, *, limits: Limits = LIMITS, tamper: Tamper = as_ordered) -> None:
        self.seed = seed
        self.dice = random.Random(seed)
        self.sizes = random.Random(seed)
        self.recalls = random.Random(seed)
        self.recalled = 0
        self.growths = random.Random(seed)
        self.charged: dict[TurnId, Charge] = {}
        self.grown = 0
        self.limits = limits
        self.tamper = tamper
        self.now = 0
        self.told = 0
        self.minted = 0
        self.last: Event = WokeUp()
        self.begin()

    def begin(self) -> None:
        """Start a scheduler that knows nothing but its replicas."""
        self.state: State = empty_state(self.limits)
        self.account = Account(self.limits) if self.limits.working_set is None else WorkingSetAccount(self.limits)
        for name in REPLICAS[:3]:
            self.tell(ReplicaAdded(spec=self.spec(name)))
            self.tell(ReplicaProbed(replica=name, healthy=True))
        self.tell(ReplicaAdded(spec=self.spec(REPLICAS[-1])))

    def run(self, events: int) -> None:
        """Let so many things happen, then let everything end well.

        Raises:
            AssertionError: with the seed and the event that show it again.
        """
        try:
            while self.told < events:
                self.step()
            self.settle()
        except AssertionError as broken:
            story = f"seed {self.seed}, event {self.told}, at {self.now} s, {self.last}: {broken}"
            raise AssertionError(story) from broken

    def tell(self, event: Event) -> None:
        """Take an event in, audit it, and every so often prove the state sound."""
        self.told += 1
        self.last = event
        decision = decide(self.state, event, Instant(float(self.now)))
        self.state = decision.state
        self.account.take(event, float(self.now), self.tamper(event, decision.actions))
        if isinstance(event, AnswerGrew):
            assert all(isinstance(action, PlaceTurn) for action in decision.actions), f"a long answer led to {decision}"
        self.charged |= {
            action.turn: action.charge
            for action in decision.actions
            if isinstance(action, PlaceTurn) and action.charge is not None
        }
        recalled = [action.turn for action in decision.actions if isinstance(action, RecallTurn)]
        if self.told % CHECK_EVERY == 0:
            self.prove()
        if isinstance(event, WokeUp):
            deadline = next_deadline(self.state)
            assert deadline is None or deadline > self.now, f"woken for nothing: {deadline}"
        for turn in recalled:
            self.answer_recall(turn)

    def answer_recall(self, turn: TurnId) -> None:
        """A dataplane takes the turn back and offers it again, says that it cannot, or has not heard of the order."""
        flight = self.account.book.flying[turn]
        roll = self.recalls.random()
        if roll < 0.6:
            self.recalled += 1
            self.tell(TurnReturned(turn=turn))
            self.tell(replace(flight.offer, turn=self.mint(), age_s=7.0, recalls=flight.offer.recalls + 1))
        elif roll < 0.8:
            self.tell(TurnStays(turn=turn))

    def prove(self) -> None:
        check(self.state)
        book = self.account.book
        assert set(self.state.turns) == set(book.flying)
        assert set(self.state.held) == set(book.waiting)
        assert set(self.state.runs) == set(book.lives)
        expiry, deadline = book.first_expiry(), next_deadline(self.state)
        assert expiry is None or (deadline is not None and deadline <= expiry), f"{deadline} is later than {expiry}"

    def step(self) -> None:
        """Let one thing happen, most often one that a healthy pool would see."""
        roll = self.dice.random()
        if roll < 0.55:
            self.live()
        elif roll < 0.70:
            self.tell(self.probe())
        elif roll < 0.92:
            self.tell(self.nonsense())
        elif roll < 0.97:
            self.pass_time()
        elif roll < 0.9995:
            self.tell(self.upheaval())
        else:
            self.forget_everything()

    def live(self) -> None:
        """A turn arrives, goes on or ends."""
        book, dice = self.account.book, self.dice
        open_turns = len(book.flying) + len(book.waiting)
        if open_turns < OPEN_MAX and dice.random() < 0.5:
            self.tell(self.offer(self.mint(), dice.choice(PEERS)))
        elif book.flying:
            turn = dice.choice(list(book.flying))
            ends: list[Event] = [
                FirstTokenSeen(turn=turn),
                self.finish(turn, tools=dice.choice(TOOLS)),
                self.finish(turn, tools=dice.choice(TOOLS)),
                self.finish(turn),
                TurnFailed(turn=turn, cause="broke", retry_after_s=dice.choice(WAITS)),
            ]
            self.tell(dice.choice(ends))
        self.let_one_grow()

    def let_one_grow(self) -> None:
        """An answer becomes longer than its turn is charged for, or its dataplane says so once more."""
        book, dice = self.account.book, self.growths
        if dice.random() < 0.9 or not book.flying:
            return
        turn = dice.choice(list(book.flying))
        charge = self.charged.get(turn)
        if charge is None or turn not in self.state.turns:
            return
        before = self.state.turns[turn]
        self.tell(AnswerGrew(turn=turn, reply_bytes=int(charge.reply_bytes * dice.choice((0.5, 1.0, 1.0, 1.7, 9.0)))))
        after = self.state.turns[turn]
        assert after.tokens >= before.tokens, f"{turn} is charged {after.tokens} after {before.tokens}"
        self.grown += after.tokens > before.tokens
        if after.charge is not None:
            self.charged[turn] = after.charge

    def finish(self, turn: TurnId, *, tools: tuple[ToolName, ...] | None = None) -> TurnFinished:
        """An engine answers whole, streamed or not, and some answers end at a cap."""
        return TurnFinished(
            turn=turn,
            tool_calls=() if tools is None else (CALL,),
            tools=tools or (),
            usage=self.usage(),
            reply_bytes=self.growths.choice((0, 9_000, 12_000, -3)),
            reply_cap=self.growths.choice((*[0] * 8, 60, -1)),
        )

    def usage(self) -> Usage | None:
        """What an engine says that a turn came to, whether that can be or not."""
        prompt = self.sizes.choice((0, 90, 2_000, 5_000, -4, 10**15))
        cached = self.sizes.choice((None, 0, 1_900, 9_000))
        usage = Usage(prompt_tokens=prompt, completion_tokens=self.sizes.choice((0, 60, -1)), cached_tokens=cached)
        return usage if self.sizes.random() < 0.8 else None

    def mint(self) -> TurnId:
        self.minted += 1
        return TurnId(f"t{self.minted}")

    def any_turn(self) -> TurnId:
        """A turn that is open, long over, or was never heard of."""
        return TurnId(f"t{max(0, self.minted - self.dice.randrange(-5, 150))}")

    def any_run(self) -> RunId:
        return RunId(f"r{self.dice.randrange(RUNS)}")

    def offer(self, turn: TurnId, peer: PeerId) -> TurnArrived:
        dice = self.dice
        kind = ReplicaKind.SINGLE_PASS if dice.random() < 0.05 else ReplicaKind.GENERATIVE
        return TurnArrived(
            turn=turn,
            peer=peer,
            run=self.any_run(),
            model=ModelName("nope") if dice.random() < 0.02 else dice.choice(MODELS),
            kind=kind,
            service_class=dice.choice(tuple(ServiceClass)),
            caller=dice.choice(CALLERS),
            principal=dice.choice(PRINCIPALS),
            age_s=dice.choice(AGES),
            prompt_bytes=self.sizes.choice((0, 400, 8_000, 20_000, 400_000, -7)),
            shape=dice.choice((*[TurnShape.IN_RUN] * 8, TurnShape.ALONE, TurnShape.ERRAND)),
            picture_bytes=self.sizes.choice((0, 0, 10_000, -7)),
            picture_tokens=self.sizes.choice((0, 0, 765, -7)),
        )

    def probe(self) -> ReplicaProbed:
        """A look at a replica, which may be unknown, or lie."""
        dice = self.dice
        name = dice.choice((*REPLICAS, ReplicaId("nobody")))
        load = Load(
            running=dice.randrange(-1, 6),
            waiting=dice.randrange(-1, 4),
            kv_tokens=self.sizes.choice((None, None, 0, -1, 6_000, 40_000)),
            preemptions=self.sizes.choice((None, 0, 1, 2)),
            prompt_tokens=self.sizes.choice((*[900_000] * 8, None, 10)),
        )
        told = load if dice.random() < 0.95 else None
        return ReplicaProbed(replica=name, healthy=dice.random() < 0.93, load=told)

    def nonsense(self) -> Event:
        """Something late, said twice or about nobody."""
        turn = self.any_turn()
        known: Sequence[Event] = (
            FirstTokenSeen(turn=turn),
            AnswerGrew(turn=turn, reply_bytes=self.growths.choice((-1, 0, 50_000, 10**30))),
            TurnFinished(turn=turn),
            TurnFinished(turn=turn, tool_calls=(CALL,)),
            TurnFailed(turn=turn, cause="late"),
            TurnAbandoned(turn=turn),
            TurnReturned(turn=turn),
            TurnStays(turn=turn),
            TurnsRenewed(turns=tuple(self.any_turn() for _ in range(8))),
            WokeUp(),
            self.offer(turn, self.dice.choice(PEERS)),
        )
        return self.dice.choice(known)

    def pass_time(self) -> None:
        self.now += self.dice.choice((1, 1, 5, 30, 119, 120, 299))
        if self.dice.random() < 0.8:
            book = self.account.book
            self.tell(TurnsRenewed(turns=(*book.flying, *book.waiting)))
        if self.dice.random() < 0.7:
            self.tell(WokeUp())

    def upheaval(self) -> Event:
        """Replicas come and go, runs are ended, dataplanes leave and return."""
        dice = self.dice
        known: Sequence[Event] = (
            ReplicaRemoved(replica=dice.choice(REPLICAS)),
            ReplicaAdded(spec=self.spec(dice.choice(REPLICAS))),
            ReplicaAdded(spec=self.spec(dice.choice(REPLICAS))),
            RunEnded(run=self.any_run()),
            RunEnded(run=self.any_run()),
            PeerLost(peer=dice.choice(PEERS)),
            self.claims(dice.choice(PEERS)),
            MemoryRestored(tools=tuple(self.claimed_tool(name) for name in ("look", "ask", "sit"))),
        )
        return dice.choice(known)

    def claimed_tool(self, name: str) -> KnownTool:
        """What somebody wrote down of a tool, or scribbled."""
        dice = self.dice
        weights = (dice.choice((1.0, 0.0, -1.0, math.inf, math.nan)),) * dice.choice((BUCKETS, BUCKETS, 3))
        unit = dice.choice((1.0, 2.0, 0.0, math.nan))
        return KnownTool(
            tool=ToolName(name), returned=3, returns=weights, losses=weights, unit=unit, age_s=dice.choice(AGES)
        )

    def spec(self, name: ReplicaId) -> ReplicaSpec:
        """A declaration; now and then another one than before under the same name."""
        if name == "s":
            return ReplicaSpec(
                replica=name, endpoint=Endpoint(url="http://s.invalid"), models=MODELS, kind=ReplicaKind.SINGLE_PASS
            )
        models = self.dice.choice((MODELS, MODELS, MODELS[:1], MODELS[:1] * 2, ()))
        kind = ReplicaKind.SINGLE_PASS if self.dice.random() < 0.05 else ReplicaKind.GENERATIVE
        url = f"http://{self.dice.choice((name, name, 'shared'))}.invalid"
        engine = EngineKind.AUTO if name == "b" else EngineKind.VLLM
        return ReplicaSpec(replica=name, endpoint=Endpoint(url=url), models=models, kind=kind, engine=engine)

    def claims(self, peer: PeerId) -> PeerResynced:
        """What a dataplane says that it knows: some of the truth, and some that nobody else has heard of."""
        book, dice = self.account.book, self.dice
        own = [turn for turn, flight in book.flying.items() if flight.offer.peer == peer and dice.random() < 0.8]
        turns = [*own, *(self.any_turn() for _ in range(dice.randrange(4)))]
        runs = [self.any_run() for _ in range(dice.randrange(6))]
        told = tuple(self.claimed_turn(turn) for turn in turns)
        return PeerResynced(peer=peer, turns=told + told[:1], runs=tuple(self.claimed_run(run) for run in runs))

    def claimed_turn(self, turn: TurnId) -> OpenTurn:
        dice = self.dice
        return OpenTurn(
            turn=turn,
            run=self.any_run(),
            replica=dice.choice((*REPLICAS, ReplicaId("stranger"))),
            model=dice.choice(MODELS),
            kind=dice.choice((*[ReplicaKind.GENERATIVE] * 4, ReplicaKind.SINGLE_PASS)),
            service_class=dice.choice(tuple(ServiceClass)),
            caller=dice.choice(CALLERS),
            principal=dice.choice(PRINCIPALS),
            charge=self.growths.choice((None, self.charged.get(turn), Charge(prompt=-5, reply=10**30, reply_bytes=-1))),
            reply_max=self.growths.choice((0, 0, 70, -7)),
        )

    def claimed_run(self, run: RunId) -> KnownRun:
        dice = self.dice
        return KnownRun(
            run=run,
            model=dice.choice(MODELS),
            phase=dice.choice((RunPhase.PAUSED, RunPhase.IDLE, RunPhase.GENERATING)),
            replica=dice.choice((*REPLICAS, ReplicaId("stranger"))),
            service_class=dice.choice(tuple(ServiceClass)),
            caller=dice.choice(CALLERS),
            principal=dice.choice(PRINCIPALS),
            age_s=dice.choice(AGES),
            tools=dice.choice(TOOLS),
        )

    def forget_everything(self) -> None:
        """The scheduler is killed and starts again: dataplanes tell what they know and offer what was held."""
        before = self.account.book
        flying = {turn: flight.replica for turn, flight in before.flying.items()}
        self.begin()
        for peer in PEERS:
            self.tell(
                PeerResynced(
                    peer=peer,
                    turns=tuple(
                        OpenTurn(
                            turn=turn,
                            run=flight.offer.run,
                            replica=flight.replica,
                            model=flight.offer.model,
                            kind=flight.offer.kind,
                            shape=flight.offer.shape,
                            service_class=flight.offer.service_class,
                            caller=flight.offer.caller,
                            principal=flight.offer.principal,
                        )
                        for turn, flight in before.flying.items()
                        if flight.offer.peer == peer
                    ),
                    runs=tuple(
                        KnownRun(
                            run=run,
                            model=model,
                            phase=RunPhase.PAUSED if life.paused else RunPhase.IDLE,
                            replica=life.home,
                            service_class=life.service_class,
                            caller=life.caller,
                            principal=life.principal,
                            age_s=self.now - life.rested_at,
                        )
                        for (run, model), life in before.lives.items()
                        if life.home is not None and not life.flying
                    ),
                )
            )
        after = {turn: flight.replica for turn, flight in self.account.book.flying.items()}
        assert after == flying, "a restart lost a turn in flight, or found one"
        for waiting in before.waiting.values():
            self.tell(waiting.offer)

    def settle(self) -> None:
        """Every replica is well, open and serves everything; every turn is answered: then nothing may be left open."""
        book = self.account.book
        last = Endpoint(url="http://last.invalid")  # declared anew, so nothing of its past holds it back
        for name in REPLICAS:
            kind = ReplicaKind.SINGLE_PASS if name == "s" else ReplicaKind.GENERATIVE
            self.tell(ReplicaAdded(spec=ReplicaSpec(replica=name, endpoint=last, models=MODELS, kind=kind)))
            self.tell(ReplicaProbed(replica=name, healthy=True))
        for _ in range(4):  # no engine closes its replica for longer
            self.tell(TurnsRenewed(turns=(*book.flying, *book.waiting)))
            self.now += 100
            self.tell(WokeUp())
        for _ in range(OPEN_MAX if self.limits.working_set is not None else 0):  # tokens are free once turns end
            for turn in list(book.flying) if self.state.held else ():
                self.tell(TurnFinished(turn=turn))
        assert not self.state.held, "somebody waits although every replica has room"
        for turn in list(book.flying):
            self.tell(TurnFinished(turn=turn))
        self.prove()
        assert not self.state.turns
        assert all(replica.in_flight == 0 for replica in self.state.replicas.values())
        self.now += int(LIMITS.run_idle_expiry_s) + 10
        self.tell(WokeUp())
        assert not self.state.runs, "a run that nobody uses is never forgotten"
        assert not self.state.tools.out, "nobody is left who could be out on a tool"
        self.prove()
