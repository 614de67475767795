"""What scheduling costs: each decision at two sizes, and a whole turn through the scheduler's service at light load.

    python benchmarks/decide.py [--events 20000] [--turns 20000] [--json FILE]

Decisions: a closed loop of agents on queueing replicas, so that the wanted number of turns is always held. Whole
turns: four replicas, eight turns in flight, nothing held; from the offer on its admission, its ticket, its placement,
two reports, metrics and timers, but not the making of offers and reports. Everything is told in processor time, so
that a busy machine counts for little; collector pauses count.
"""

import argparse
import asyncio
import gc
import json
import random
import statistics
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import uvloop

from luftpause.core.model.ids import (
    ANONYMOUS_CALLER,
    ANONYMOUS_PRINCIPAL,
    CallerId,
    Instant,
    ModelName,
    PeerId,
    ReplicaId,
    RunId,
    ToolCallId,
    ToolName,
    TurnId,
)
from luftpause.core.model.replicas import Endpoint, Load, ReplicaKind, ReplicaSpec
from luftpause.core.model.turns import IdentityKeys, ServiceClass, TurnOffer, Usage
from luftpause.core.scheduling.actions import Action, PlaceTurn
from luftpause.core.scheduling.decide import decide, next_deadline
from luftpause.core.scheduling.events import (
    Event,
    FirstTokenSeen,
    KnownRun,
    PeerResynced,
    ReplicaAdded,
    ReplicaProbed,
    RunPhase,
    TurnArrived,
    TurnFinished,
    TurnReport,
    TurnsRenewed,
)
from luftpause.core.scheduling.invariants import check
from luftpause.core.scheduling.state import Limits, empty_state
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.scheduler.settings import SchedulerSettings

MODEL = ModelName("m")
PEER = PeerId("peer")
CALLERS = 40
TOOLS = tuple(ToolName(f"server__tool-{number}") for number in range(40))
SEED = 1
TURNS_A_RUN = 8
IN_FLIGHT_LIGHT = 8
REPLICAS_LIGHT = 4
BLOCK = 500
"""Whole turns are timed in blocks of so many, so that reading the clock costs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a scheduler is measured."""

    runs: int
    replicas: int
    held: int


SIZES = (Size(runs=1000, replicas=16, held=200), Size(runs=100_000, replicas=256, held=10_000))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Times of one kind, microseconds of processor time."""

    count: int
    mean_us: float
    p50_us: float
    p99_us: float
    max_us: float


def spread(took_ns: list[int]) -> Spread:
    in_order = sorted(took_ns)
    return Spread(
        count=len(in_order),
        mean_us=round(statistics.fmean(in_order) / 1000, 2),
        p50_us=round(in_order[len(in_order) // 2] / 1000, 2),
        p99_us=round(in_order[int(len(in_order) * 0.99)] / 1000, 2),
        max_us=round(in_order[-1] / 1000, 2),
    )


class Loop:
    """Agents that take turns, pause on tools and come back; every decision is timed, nanoseconds by event."""

    def __init__(self, size: Size) -> None:
        self.dice = random.Random(SEED)
        self.state = empty_state(Limits())
        self.now = 1000.0
        self.took: dict[str, list[int]] = {}
        self.flying: list[TurnId] = []
        self.resting = [RunId(f"run-{number}") for number in range(size.runs)]
        self.run_of: dict[TurnId, RunId] = {}
        self.wanted_held = size.held
        self.turns = 0
        self.replicas = [ReplicaId(f"replica-{number}") for number in range(size.replicas)]
        self.cap = max(1, size.runs // (4 * size.replicas))
        for replica in self.replicas:
            self.tell(ReplicaAdded(spec=declared(replica)))
            self.probe(replica)
        self.tell(PeerResynced(peer=PEER, turns=(), runs=tuple(self.known(run) for run in self.resting)))
        while len(self.state.held) < size.held:
            self.step()

    def known(self, run: RunId) -> KnownRun:
        """Tell of a run that took turns before."""
        service_class, caller = owner(run)
        return KnownRun(
            run=run,
            phase=RunPhase.PAUSED if self.dice.random() < 0.7 else RunPhase.IDLE,
            replica=self.dice.choice(self.replicas),
            service_class=service_class,
            caller=caller,
            principal=ANONYMOUS_PRINCIPAL,
            age_s=self.dice.uniform(0, 600),
            tools=(self.dice.choice(TOOLS),),
        )

    def tell(self, event: Event) -> tuple[Action, ...]:
        """Take an event in, with the time that it took."""
        started = time.thread_time_ns()
        decision = decide(self.state, event, Instant(self.now))
        next_deadline(decision.state)
        took = time.thread_time_ns() - started
        self.took.setdefault(type(event).__name__, []).append(took)
        self.state = decision.state
        self.flying += [action.turn for action in decision.actions if isinstance(action, PlaceTurn)]
        return decision.actions

    def probe(self, replica: ReplicaId) -> None:
        """Tell that a replica queues, so that its turns stay capped."""
        self.tell(ReplicaProbed(replica=replica, healthy=True, load=Load(running=self.cap, waiting=1)))

    def arrive(self) -> None:
        """Let a run that rests offer its next turn."""
        position = self.dice.randrange(len(self.resting))
        self.resting[position], self.resting[-1] = self.resting[-1], self.resting[position]
        run = self.resting.pop()
        self.turns += 1
        turn = TurnId(f"{PEER}.{self.turns}")
        self.run_of[turn] = run
        service_class, caller = owner(run)
        self.tell(
            TurnArrived(
                turn=turn,
                peer=PEER,
                run=run,
                model=MODEL,
                kind=ReplicaKind.GENERATIVE,
                service_class=service_class,
                caller=caller,
                principal=ANONYMOUS_PRINCIPAL,
            )
        )

    def finish(self) -> None:
        """End a random turn in flight, more often with a tool call than not."""
        position = self.dice.randrange(len(self.flying))
        self.flying[position], self.flying[-1] = self.flying[-1], self.flying[position]
        turn = self.flying.pop()
        calls = (ToolCallId(f"call-{turn}"),) if self.dice.random() < 0.7 else ()
        self.resting.append(self.run_of.pop(turn))
        self.tell(TurnFinished(turn=turn, tool_calls=calls, tools=(self.dice.choice(TOOLS),) if calls else ()))

    def step(self) -> None:
        """Let one thing happen."""
        self.now += 0.01
        roll = self.dice.random()
        if roll < 0.05:
            self.probe(self.dice.choice(self.replicas))
        elif roll < 0.06:
            self.tell(TurnsRenewed(turns=tuple(self.flying[:50])))
        elif self.resting and (len(self.state.held) < self.wanted_held or not self.flying):
            self.arrive()
        elif self.flying:
            self.finish()


def declared(replica: ReplicaId) -> ReplicaSpec:
    return ReplicaSpec(replica=replica, endpoint=Endpoint(url="http://127.0.0.1:1"), models=(MODEL,))


def owner(run: RunId) -> tuple[ServiceClass, CallerId]:
    """Return the class and the caller of a run: every tenth is interactive."""
    number = int(run.rpartition("-")[2])
    return (ServiceClass.BATCH if number % 10 else ServiceClass.INTERACTIVE), CallerId(f"caller-{number % CALLERS}")


def measure_decisions(size: Size, events: int) -> dict[str, Spread]:
    """Return how long decisions of each kind took, and all of them together."""
    loop = Loop(size)
    for _ in range(events // 5):
        loop.step()
    check(loop.state)
    loop.took.clear()
    gc.collect()
    for _ in range(events):
        loop.step()
    check(loop.state)
    everything = [took for times in loop.took.values() for took in times]
    return {"all": spread(everything), **{name: spread(times) for name, times in sorted(loop.took.items())}}


def light_turns(turns: int, turns_a_run: int) -> Iterator[tuple[TurnOffer, tuple[TurnReport, ...]]]:
    """Yield offers with their reports; a run's later turns echo its tool calls and say nothing else of it."""
    lives = [0] * IN_FLIGHT_LIGHT
    echoes: list[tuple[ToolCallId, ...]] = [()] * IN_FLIGHT_LIGHT
    for number in range(turns):
        slot = number % IN_FLIGHT_LIGHT
        turn = TurnId(f"{PEER}.{number}")
        offer = TurnOffer(
            turn=turn,
            peer=PEER,
            model=MODEL,
            kind=ReplicaKind.GENERATIVE,
            service_class=ServiceClass.INTERACTIVE,
            caller=ANONYMOUS_CALLER,
            principal=ANONYMOUS_PRINCIPAL,
            keys=IdentityKeys(tool_calls=echoes[slot]),
        )
        lives[slot] += 1
        goes_on = lives[slot] % turns_a_run != 0
        calls = (ToolCallId(f"call-{number}"),) if goes_on else ()
        echoes[slot] = (*echoes[slot], *calls) if goes_on else ()
        usage = Usage(prompt_tokens=100, completion_tokens=10)
        tools = (TOOLS[number % len(TOOLS)],) if goes_on else ()
        ended = TurnFinished(turn=turn, finish="stop", usage=usage, tool_calls=calls, tools=tools)
        yield offer, (FirstTokenSeen(turn=turn), ended)


async def measure_whole_turns(turns: int, turns_a_run: int) -> Spread:
    """Return what one turn costs, from blocks of turns."""
    service = SchedulerService(SchedulerSettings())
    service.start()
    for number in range(REPLICAS_LIGHT):
        replica = ReplicaId(f"replica-{number}")
        service.add_replica(declared(replica))
        service.probed(ReplicaProbed(replica=replica, healthy=True))
    took: list[int] = []
    under_way: deque[tuple[TurnReport, ...]] = deque()
    ahead = list(light_turns(turns + IN_FLIGHT_LIGHT, turns_a_run))
    gc.collect()
    for first in range(0, turns, BLOCK):
        started = time.thread_time_ns()
        for offer, reports in ahead[first : first + BLOCK]:
            await service.admit(offer).placement
            under_way.append(reports)
            if len(under_way) == IN_FLIGHT_LIGHT:
                for report in under_way.popleft():
                    service.report(report)
        took.append((time.thread_time_ns() - started) // BLOCK)
        await asyncio.sleep(0)
    check(service.state)
    service.close()
    return spread(took[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description="Time scheduling.")
    parser.add_argument("--events", type=int, default=20_000, help="decisions to time at each size; 0 for none")
    parser.add_argument("--turns", type=int, default=20_000, help="whole turns to time")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    report: dict[str, object] = {}
    print(f"{'microseconds of processor time':48}{'count':>8}{'mean':>9}{'p50':>9}{'p99':>9}{'max':>10}")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for turns_a_run in (1, TURNS_A_RUN):
            whole = runner.run(measure_whole_turns(options.turns, turns_a_run))
            show(f"whole turn, {turns_a_run} a run (in blocks of {BLOCK})", whole)
            report[f"whole_turn_{turns_a_run}"] = asdict(whole)
    for size in SIZES if options.events else ():
        by_event = measure_decisions(size, options.events)
        print(f"{size.runs} runs, {size.replicas} replicas, {size.held} held")
        for name, times in by_event.items():
            show(f"  decide, {name}", times)
        report[f"decide_{size.runs}"] = {name: asdict(times) for name, times in by_event.items()}
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def show(name: str, times: Spread) -> None:
    print(
        f"{name:48}{times.count:>8}{times.mean_us:>9.1f}{times.p50_us:>9.1f}{times.p99_us:>9.1f}{times.max_us:>10.1f}"
    )


if __name__ == "__main__":
    main()
