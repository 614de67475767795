"""Random but repeatable histories of events, drawn from a seed: every kind of event, and every kind of nonsense."""

import hashlib
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from core.scheduling.builders import arrived, spec
from core.scheduling.canonical import text_of
from core.scheduling.residency.words import down, engine, joined, load_failed, model, unload_asked, up
from luftpause.core.model.charges import Charge
from luftpause.core.model.ids import (
    CallerId,
    Instant,
    LauncherId,
    ModelName,
    PeerId,
    PrincipalId,
    ReplicaId,
    RunId,
    ToolCallId,
    ToolName,
    TurnId,
)
from luftpause.core.model.models import EnginePhase, ModelGroup
from luftpause.core.model.replicas import EngineKind, Load, ReplicaKind
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.decide import decide
from luftpause.core.scheduling.events import (
    AnswerGrew,
    Event,
    FirstTokenSeen,
    KnownReplica,
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
from luftpause.core.scheduling.residency.events import (
    LauncherJoined,
    LauncherLost,
    LoadAsked,
    LoadProgressed,
    PinAsked,
)
from luftpause.core.scheduling.state import Limits, empty_state
from luftpause.core.scheduling.tool_history import BUCKETS

Drawn = TypeVar("Drawn")

SECONDS = (0.0, 0.0, 0.0, 3.0, 400.0, -5.0, 1e9, math.inf, -math.inf, math.nan)
"""What a peer may call an age or a wait."""

URLS = ("http://shared.invalid", "http://other.invalid")


def history(seed: int, length: int) -> Iterator[tuple[Event, Instant]]:
    """Yield events with their instants: mostly traffic, now and then trouble."""
    dice = random.Random(seed)
    now = 0.0
    for name in "abcd":
        yield ReplicaAdded(spec=spec(name, "m", "n")), Instant(now)
    for _ in range(length):
        now += dice.choice([0.0, 0.01, 1.0, 30.0])
        yield Draw(dice).event(), Instant(now)


class Draw:
    """Draws events about few things, so that ids are often known, open twice, late or claimed by somebody else."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def one(self, *of: Drawn) -> Drawn:
        return self.dice.choice(of)

    def event(self) -> Event:
        roll = self.dice.random()
        if roll < 0.4:
            return self.arrival()
        if roll < 0.6:
            tools = self.one((), ("look",), ("wiki__search", "look"), ("mcp__wiki__search",))
            return TurnFinished(
                turn=self.turn(),
                tool_calls=self.one((), (ToolCallId("call"),)),
                tools=tuple(map(ToolName, tools)),
            )
        if roll < 0.75:
            return self.probe()
        return self.one(*self.rare())()

    def rare(self) -> Sequence[Callable[[], Event]]:
        return (
            lambda: FirstTokenSeen(turn=self.turn()),
            lambda: AnswerGrew(turn=self.turn(), reply_bytes=self.one(0, 90_000, 10**7, -5)),
            lambda: TurnFailed(turn=self.turn(), cause="broke", retry_after_s=self.one(None, *SECONDS)),
            lambda: TurnAbandoned(turn=self.turn()),
            lambda: TurnReturned(turn=self.turn()),
            lambda: TurnStays(turn=self.turn()),
            lambda: TurnsRenewed(turns=tuple(self.turn() for _ in range(self.dice.randrange(30)))),
            lambda: RunEnded(run=self.run()),
            lambda: PeerLost(peer=self.peer()),
            self.claims,
            lambda: ReplicaRemoved(replica=self.replica()),
            self.declaration,
            self.declaration,
            self.memory,
            WokeUp,
            *(self.of_models for _ in range(8)),
        )

    def of_models(self) -> Event:
        """Report of a model, in order or not: of one that is up already, of one that nobody declared, twice."""
        name = ModelName(self.one("m", "n", "big", "small", "nope"))
        reports: Sequence[Callable[[], Event]] = (
            self.join,
            lambda: LauncherLost(launcher=LauncherId(self.one("box", "other", "nobody"))),
            lambda: LoadProgressed(model=name, fraction=self.one(0.5, -1.0, 2.0, float("nan"))),
            lambda: up(name, self.one(0, 1, 3), self.one("", "", "", "a", "box/small")),
            lambda: up(name),
            lambda: up(name),
            lambda: load_failed(name, oom=self.one(True, False)),
            lambda: down(name, "gone"),
            lambda: down(name, "gone"),
            lambda: LoadAsked(model=name),
            lambda: unload_asked(name, firmly=self.one(True, False), keep=self.one(True, False)),
            lambda: PinAsked(model=name, on=self.dice.random() < 0.3),
        )
        return self.one(*reports)()

    def join(self) -> LauncherJoined:
        """Let a launcher join, with what another one has, without what it had, or with what nobody ordered."""
        marks = self.one((), (), ("persistent",), ("pinned",), ("preload",), ("unload_at_tree_end", "auto_restart"))
        groups = (None, None, ModelGroup(name="g", swap=True), ModelGroup(name="x", exclusive=True))
        catalogue = tuple(
            model(
                name,
                self.one(1, 2, 3, 20),
                *marks,
                load=self.one(None, 2.0, -1.0, float("nan")),
                ttl=self.one(None, 0.0, 5.0, 60.0, float("nan")),
                group=self.one(*groups),
                kind=self.kind(),
                build=self.one("", "", "other"),
            )
            for name in ("n", "big", "small", "m")[: self.dice.randrange(5)]
        )
        engines = tuple(
            engine(name, self.one(*EnginePhase), memory=self.one(0, 2), build=self.one("", "", "other"))
            for name in ("n", "small", "stray")
            if self.dice.random() < 0.4
        )
        return joined(*catalogue, launcher=self.one("box", "box", "other"), ram=self.one(4, 4, 6), engines=engines)

    def turn(self) -> TurnId:
        return TurnId(f"t{self.dice.randrange(60)}")

    def run(self) -> RunId:
        return RunId(f"r{self.dice.randrange(15)}")

    def peer(self) -> PeerId:
        return PeerId(self.one("p", "q", "nobody"))

    def replica(self) -> ReplicaId:
        return ReplicaId(self.one("a", "b", "c", "d", "s", "nobody"))

    def kind(self) -> ReplicaKind:
        return self.one(ReplicaKind.GENERATIVE, ReplicaKind.GENERATIVE, ReplicaKind.SINGLE_PASS)

    def arrival(self) -> TurnArrived:
        return arrived(
            self.turn(),
            self.run(),
            batch=self.dice.random() < 0.6,
            caller=self.one("x", "y", "z", ""),
            principal=self.one("alice", "alice", "bob"),
            model=self.one("m", "m", "n", "n", "big", "small", "nope", ""),
            kind=self.one(ReplicaKind.GENERATIVE, ReplicaKind.GENERATIVE, self.kind()),
            peer=self.peer(),
            age_s=self.one(*SECONDS),
            parent=self.one(None, None, self.run()),
        )

    def probe(self) -> ReplicaProbed:
        load = Load(running=self.one(0, 1, 2, 3, -1), waiting=self.one(0, 1, 1, 2, -1))
        return ReplicaProbed(
            replica=self.replica(),
            healthy=self.dice.random() < 0.9,
            load=self.one(load, load, load, None),
            engine=self.one(*EngineKind),
            cause=self.one("", "gone"),
        )

    def declaration(self) -> ReplicaAdded:
        """Declare a replica: like others, with their address, with a model twice, or with none at all."""
        models = self.one(("m", "n"), ("m", "n"), ("n",), ("m", "m"), ())
        declared = spec(self.replica(), kind=self.kind(), url=self.one(*URLS))
        return ReplicaAdded(spec=replace(declared, models=tuple(map(ModelName, models))))

    def memory(self) -> MemoryRestored:
        """Remember a tool and a replica, sensibly or not."""
        weights = (self.one(0.0, 1.0, -1.0),) * self.one(BUCKETS, 2)
        tool = KnownTool(
            tool=ToolName(self.one("look", "ask")),
            returned=1,
            returns=weights,
            losses=weights,
            unit=1.0,
            age_s=self.one(*SECONDS),
        )
        window = self.one(None, (3, None, 0), (2, 5, 1), (5, 2, 0))
        return MemoryRestored(tools=(tool,), replicas=(KnownReplica(replica=self.replica(), placed=3, window=window),))

    def claims(self) -> PeerResynced:
        """Claim turns of others, one twice, on replicas nobody declared; runs that are open, or from the future."""
        turns = tuple(self.open_turn() for _ in range(self.dice.randrange(5)))
        runs = tuple(self.known_run() for _ in range(self.dice.randrange(4)))
        return PeerResynced(peer=self.peer(), turns=turns + turns[:1], runs=runs + runs[:1])

    def open_turn(self) -> OpenTurn:
        return OpenTurn(
            turn=self.turn(),
            run=self.run(),
            replica=self.replica(),
            model=ModelName(self.one("m", "nope")),
            kind=self.kind(),
            service_class=self.one(*ServiceClass),
            caller=CallerId(self.one("x", "y")),
            principal=PrincipalId(self.one("alice", "bob")),
            parent=self.one(None, self.run()),
            charge=self.one(None, Charge(prompt=900, reply=300, reply_bytes=60_000), Charge(prompt=-1, reply=10**12)),
        )

    def known_run(self) -> KnownRun:
        return KnownRun(
            run=self.run(),
            model=ModelName(self.one("m", "n")),
            phase=self.one(*RunPhase),
            replica=self.replica(),
            service_class=self.one(*ServiceClass),
            caller=CallerId(self.one("x", "y")),
            principal=PrincipalId(self.one("alice", "bob")),
            age_s=self.one(*SECONDS),
            tools=self.one((), (ToolName("look"),)),
            parent=self.one(None, self.run()),
        )


def fingerprint(seed: int, length: int) -> str:
    """Return a digest of every state and every order that a history leads to."""
    state = empty_state(Limits())
    digest = hashlib.sha256()
    for event, now in history(seed, length):
        decision = decide(state, event, now)
        state = decision.state
        digest.update(text_of(decision).encode())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.stdout.write(fingerprint(int(sys.argv[1]), int(sys.argv[2])))
