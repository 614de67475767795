"""What scheduling costs: decisions at many sizes, and a whole turn through the scheduler's service at light load.

    python benchmarks/decide.py [--events 10000] [--turns 20000] [--json FILE]

At the largest size also what seldom comes, each decision once and with all that is left over from the load before:
every open turn renewed and looked at, until a dataplane falls silent and all of them are over, then all runs; and a
load without repetitions at which the collector would think every few looks that it is time to look at everything.
Decisions: a closed loop of agents on queueing replicas, so that the wanted number of turns is always held, from one
caller, from fifty, or each from another one. Every decision is made three times on the same state; `p99 of 3` is of
the shortest times, without what a busy machine adds. The second table holds everything but the number of runs.
Whole turns: four replicas, eight turns in flight, nothing held; from the offer on its admission, its ticket, its
placement, two reports, metrics and timers, but not the making of offers and reports. Everything is told in processor
time, so that a busy machine counts for little; collector pauses count, with the collector set as in a service.
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
    WokeUp,
)
from luftpause.core.scheduling.invariants import check
from luftpause.core.scheduling.state import Limits, empty_state
from luftpause.core.scheduling.view import view
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.scheduler.settings import SchedulerSettings
from luftpause.telemetry.pauses import THRESHOLDS, ShortPauses, begin

MODEL = ModelName("m")
PEER = PeerId("peer")
FEW_CALLERS = 50
TOOLS = tuple(ToolName(f"server__tool-{number}") for number in range(40))
SEED = 1
PROMPT_TOKENS = 2000
TURNS_A_RUN = 8
IN_FLIGHT_LIGHT = 8
REPLICAS_LIGHT = 4
SILENT_MAX = 8
"""So many of the turns placed last have made no token yet."""
AGAIN = 3
"""As a rule each decision is made so often on the same state: the first time tells the machine's cost, too."""
BLOCK = 500
"""Whole turns are timed in blocks of so many, so that reading the clock costs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a scheduler is measured. `each`: what each replica runs."""

    runs: int
    replicas: int
    held: int
    callers: int
    each: int


def sizes(runs: int, replicas: int, held: int) -> list[Size]:
    """Return one size for one caller, one for few and one where every held turn has another caller."""
    each = max(1, runs // (4 * replicas))
    return [
        Size(runs=runs, replicas=replicas, held=held, callers=callers, each=each) for callers in (1, FEW_CALLERS, held)
    ]


CURVE = [*sizes(1000, 16, 200), *sizes(10_000, 64, 2000), *sizes(100_000, 256, 10_000)]
GROWTH = [Size(runs=runs, replicas=16, held=200, callers=FEW_CALLERS, each=15) for runs in (1000, 10_000, 100_000)]
VIEWS = 5
"""How often the status is looked at."""
LARGEST = Size(runs=100_000, replicas=256, held=10_000, callers=FEW_CALLERS, each=97)
LONG_LOAD = 10
"""So many times `--events` without repetitions show what the collector does in the long run."""
IMPATIENT = (*THRESHOLDS[:2], 10)
"""The collector's thresholds for that: millions of decisions as thousands."""


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

    def __init__(self, size: Size, limits: Limits, again: int = AGAIN) -> None:
        self.dice = random.Random(SEED)
        self.state = empty_state(limits)
        self.now = 1000.0
        self.took: dict[str, list[int]] = {}
        self.pauses = ShortPauses(lambda: True)
        self.tries = again
        self.again: list[int] = []
        self.flying: list[TurnId] = []
        self.silent: deque[TurnId] = deque()
        self.resting = [RunId(f"run-{number}") for number in range(size.runs)]
        self.run_of: dict[TurnId, RunId] = {}
        self.callers = size.callers
        self.wanted_held = size.held
        self.turns = 0
        self.replicas = [ReplicaId(f"replica-{number}") for number in range(size.replicas)]
        self.each = size.each
        for replica in self.replicas:
            self.tell(ReplicaAdded(spec=declared(replica)))
            self.probe(replica)
        self.tell(PeerResynced(peer=PEER, turns=(), runs=tuple(self.known(run) for run in self.resting)))
        while len(self.state.held) < size.held:
            self.step()

    def known(self, run: RunId) -> KnownRun:
        """Tell of a run that took turns before."""
        service_class, caller = self.owner(run)
        return KnownRun(
            run=run,
            model=MODEL,
            phase=RunPhase.PAUSED if self.dice.random() < 0.7 else RunPhase.IDLE,
            replica=self.dice.choice(self.replicas),
            service_class=service_class,
            caller=caller,
            principal=ANONYMOUS_PRINCIPAL,
            age_s=self.dice.uniform(0, 600),
            tools=(self.dice.choice(TOOLS),),
        )

    def owner(self, run: RunId) -> tuple[ServiceClass, CallerId]:
        """Return the class and the caller of a run: every tenth is interactive."""
        number = int(run.rpartition("-")[2])
        caller = CallerId(f"caller-{number % self.callers}")
        return (ServiceClass.BATCH if number % 10 else ServiceClass.INTERACTIVE), caller

    def tell(self, event: Event) -> tuple[Action, ...]:
        """Take an event in, with the time that it took."""
        started = time.thread_time_ns()
        decision = decide(self.state, event, Instant(self.now))
        next_deadline(decision.state)
        took = time.thread_time_ns() - started
        self.took.setdefault(type(event).__name__, []).append(took)
        self.again.append(min([took, *(self.repeat(event) for _ in range(self.tries - 1))]))
        self.state = decision.state
        placed = [action.turn for action in decision.actions if isinstance(action, PlaceTurn)]
        self.flying += placed
        self.silent += placed
        self.pauses.decided(len(self.state.runs))
        return decision.actions

    def repeat(self, event: Event) -> int:
        """Decide the same again, which changes nothing, and return the time that it took."""
        started = time.thread_time_ns()
        next_deadline(decide(self.state, event, Instant(self.now)).state)
        return time.thread_time_ns() - started

    def probe(self, replica: ReplicaId) -> None:
        """Tell what a replica does of ours: it queues once it has `each` turns, so that its turns stay capped."""
        known = self.state.replicas.get(replica)
        sent = 0 if known is None else known.in_flight
        waiting = max(1, sent - self.each) if sent >= self.each else 0
        load = Load(running=min(sent, self.each), waiting=waiting, kv_tokens=self.each * PROMPT_TOKENS)
        self.tell(ReplicaProbed(replica=replica, healthy=True, load=load))

    def arrive(self) -> None:
        """Let a run that rests offer its next turn."""
        position = self.dice.randrange(len(self.resting))
        self.resting[position], self.resting[-1] = self.resting[-1], self.resting[position]
        run = self.resting.pop()
        self.turns += 1
        turn = TurnId(f"{PEER}.{self.turns}")
        self.run_of[turn] = run
        service_class, caller = self.owner(run)
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
                prompt_bytes=4 * PROMPT_TOKENS,
            )
        )

    def finish(self) -> None:
        """End a random turn in flight, more often with a tool call than not."""
        position = self.dice.randrange(len(self.flying))
        self.flying[position], self.flying[-1] = self.flying[-1], self.flying[position]
        turn = self.flying.pop()
        calls = (ToolCallId(f"call-{turn}"),) if self.dice.random() < 0.7 else ()
        self.resting.append(self.run_of.pop(turn))
        tools = (self.dice.choice(TOOLS),) if calls else ()
        usage = Usage(prompt_tokens=PROMPT_TOKENS, completion_tokens=100, cached_tokens=PROMPT_TOKENS - 200)
        self.tell(TurnFinished(turn=turn, tool_calls=calls, tools=tools, usage=usage))

    def step(self) -> None:
        """Let one thing happen, what is due too, and the turns that were placed before the last few tell a token."""
        self.now += 0.01
        self.wake_up()
        while len(self.silent) > SILENT_MAX:
            self.tell(FirstTokenSeen(turn=self.silent.popleft()))
        roll = self.dice.random()
        if roll < 0.05:
            self.probe(self.dice.choice(self.replicas))
        elif roll < 0.06:
            self.tell(TurnsRenewed(turns=tuple(self.flying[:50])))
        elif self.resting and (len(self.state.held) < self.wanted_held or not self.flying):
            self.arrive()
        elif self.flying:
            self.finish()

    def wake_up(self) -> None:
        """Let everything happen that is due."""
        while (due := next_deadline(self.state)) is not None and due <= self.now:
            self.tell(WokeUp())


def declared(replica: ReplicaId) -> ReplicaSpec:
    return ReplicaSpec(replica=replica, endpoint=Endpoint(url="http://127.0.0.1:1"), models=(MODEL,))


class Pauses:
    """Listens to the collector: how long its pauses were, nanoseconds of processor time; how many looked at all."""

    def __init__(self) -> None:
        self.took: list[int] = []
        self.whole = 0
        self._since = 0

    def __call__(self, phase: str, told: dict[str, int]) -> None:
        """Hear of the start and the end of a pause."""
        self.whole += phase == "start" and told["generation"] == 2
        if phase == "start":
            self._since = time.thread_time_ns()
        else:
            self.took.append(time.thread_time_ns() - self._since)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One size: how long decisions took, by kind and all together; the status; collector pauses, milliseconds.

    `recovery_ms` is the longest of some probes with which replicas fall ill and are well again.
    """

    size: Size
    by_event: dict[str, Spread]
    again: Spread
    status_ms: float
    recovery_ms: float
    pauses: int
    longest_pause_ms: float


def measure_decisions(size: Size, limits: Limits, events: int) -> Measured:
    """Measure one size."""
    loop = Loop(size, limits)
    for _ in range(events // 5):
        loop.step()
    check(loop.state)
    loop.took.clear()
    loop.again.clear()
    gc.collect()
    pauses = Pauses()
    gc.callbacks.append(pauses)
    for _ in range(events):
        loop.step()
    gc.callbacks.remove(pauses)
    check(loop.state)
    everything = [took for times in loop.took.values() for took in times]
    return Measured(
        size=size,
        by_event={"all": spread(everything), **{name: spread(times) for name, times in sorted(loop.took.items())}},
        again=spread(loop.again),
        status_ms=round(min(time_status(loop) for _ in range(VIEWS)), 2),
        recovery_ms=round(time_recovery(loop), 2),
        pauses=len(pauses.took),
        longest_pause_ms=round(max(pauses.took, default=0) / 1e6, 2),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Seldom:
    """What seldom comes, at one size: decisions and the longest of them, milliseconds; the same of pauses.

    `whole` are the collector's looks at everything while turns are open; `rest_ms` is the one when nothing is.
    """

    size: Size
    renewals: int
    renewal_ms: float
    looks: int
    look_ms: float
    over: int
    over_ms: float
    forgotten: int
    forgotten_ms: float
    pauses: int
    longest_pause_ms: float
    whole: int
    rest_ms: float


def measure_seldom(size: Size, limits: Limits, events: int) -> Seldom:
    """Measure one size."""
    loop = Loop(size, limits, again=1)
    gc.collect()
    gc.set_threshold(*IMPATIENT)
    pauses = Pauses()
    gc.callbacks.append(pauses)
    for _ in range(LONG_LOAD * events):
        loop.step()
    gc.callbacks.remove(pauses)
    begin()
    renewed, looked = time_looks(loop)
    check(loop.state)
    over, forgotten = time_ends(loop)
    check(loop.state)
    return Seldom(
        size=size,
        renewals=len(renewed),
        renewal_ms=milliseconds(renewed),
        looks=len(looked),
        look_ms=milliseconds(looked),
        over=len(over),
        over_ms=milliseconds(over),
        forgotten=len(forgotten),
        forgotten_ms=milliseconds(forgotten),
        pauses=len(pauses.took),
        longest_pause_ms=milliseconds(pauses.took),
        whole=pauses.whole,
        rest_ms=round(time_rest(loop), 2),
    )


def milliseconds(took_ns: list[int]) -> float:
    """Return the longest of some times."""
    return round(max(took_ns, default=0) / 1e6, 2)


def time_looks(loop: Loop) -> tuple[list[int], list[int]]:
    """Let turns go on for as long as one may be silent, with signs of life; return renewals and wake-ups."""
    loop.took.clear()
    limits = loop.state.limits
    turns = sorted((*loop.state.turns, *loop.state.held))
    until = loop.now + 1.5 * limits.turn_timeout_s
    while loop.now < until:
        loop.now += limits.turn_timeout_s / 4
        loop.tell(TurnsRenewed(turns=tuple(turns)))
        loop.wake_up()
    return loop.took["TurnsRenewed"], loop.took["WokeUp"]


def time_ends(loop: Loop) -> tuple[list[int], list[int]]:
    """Let all turns fall silent until none is left, then all runs; return the wake-ups of each."""
    ended: list[list[int]] = []
    for wait_s in (loop.state.limits.turn_timeout_s, loop.state.limits.run_idle_expiry_s):
        loop.took.clear()
        loop.now += 2 * wait_s
        while loop.state.turns or loop.state.held:
            loop.wake_up()
            loop.now += wait_s
        loop.wake_up()
        ended.append(loop.took["WokeUp"])
    return ended[0], ended[1]


def time_rest(loop: Loop) -> float:
    """Return how long the collector looks at everything once nothing is open, milliseconds."""
    started = time.thread_time_ns()
    loop.pauses.look_at_all()
    return (time.thread_time_ns() - started) / 1e6


def time_status(loop: Loop) -> float:
    """Return how long a look at the whole state takes, milliseconds."""
    started = time.thread_time_ns()
    view(loop.state, Instant(loop.now))
    return (time.thread_time_ns() - started) / 1e6


def time_recovery(loop: Loop) -> float:
    """Return how long the longest of the probes takes that lose a replica and find it again, milliseconds."""
    loop.took.clear()
    for replica in loop.replicas[:VIEWS]:
        loop.tell(ReplicaProbed(replica=replica, healthy=False))
        loop.probe(replica)
    return max(loop.took["ReplicaProbed"]) / 1e6


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
    parser.add_argument("--events", type=int, default=10_000, help="decisions to time at each size; 0 for none")
    parser.add_argument("--turns", type=int, default=20_000, help="whole turns to time")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE", help="write the figures there too")
    parser.add_argument("--policy", choices=("turn-admission", "working-set"), default="turn-admission")
    options = parser.parse_args()
    limits = Limits(working_set=WorkingSetLimits() if options.policy == "working-set" else None)
    begin()
    report: dict[str, object] = {}
    print("whole turns, microseconds of processor time")
    print(f"{'':34}{'count':>8}{'mean':>9}{'p50':>9}{'p99':>9}{'max':>10}")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for turns_a_run in (1, TURNS_A_RUN):
            whole = runner.run(measure_whole_turns(options.turns, turns_a_run))
            show(f"{turns_a_run} a run (in blocks of {BLOCK})", whole)
            report[f"whole_turn_{turns_a_run}"] = asdict(whole)
    if options.events:
        report["curve"] = show_curve(
            "decide, microseconds; status and recovery, milliseconds", CURVE, limits, options.events
        )
        report["growth"] = show_curve(
            "decide against the number of runs, all else the same", GROWTH, limits, options.events
        )
        report["seldom"] = show_seldom(measure_seldom(LARGEST, limits, options.events))
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def show(name: str, times: Spread) -> None:
    print(
        f"{name:34}{times.count:>8}{times.mean_us:>9.1f}{times.p50_us:>9.1f}{times.p99_us:>9.1f}{times.max_us:>10.1f}"
    )


def show_curve(title: str, curve: list[Size], limits: Limits, events: int) -> list[dict[str, object]]:
    """Measure sizes one after the other; print a line for each and return all figures."""
    print(f"{title}\n{'runs':>8}{'replicas':>9}{'held':>7}{'callers':>8}", end="")
    print(f"{'p50':>9}{'p99':>9}{'max':>10}{'p99 of 3':>10}{'status':>9}{'recovery':>9}{'pauses':>8}{'longest':>9}")
    figures: list[dict[str, object]] = []
    for size in curve:
        one = measure_decisions(size, limits, events)
        times = one.by_event["all"]
        print(f"{size.runs:>8}{size.replicas:>9}{size.held:>7}{size.callers:>8}", end="")
        print(f"{times.p50_us:>9.1f}{times.p99_us:>9.1f}{times.max_us:>10.1f}{one.again.p99_us:>10.1f}", end="")
        print(f"{one.status_ms:>9.2f}{one.recovery_ms:>9.2f}{one.pauses:>8}{one.longest_pause_ms:>9.2f}", flush=True)
        figures.append(asdict(one))
    return figures


def show_seldom(figures: Seldom) -> dict[str, object]:
    """Print what seldom comes, a line for each kind, and return all figures."""
    size = figures.size
    print(f"what seldom comes, {size.runs} runs, {size.replicas} replicas: the longest of each, milliseconds")
    for name, count, longest in (
        ("all turns renewed", figures.renewals, figures.renewal_ms),
        ("a look at turns that go on", figures.looks, figures.look_ms),
        ("turns that are over", figures.over, figures.over_ms),
        ("runs that are forgotten", figures.forgotten, figures.forgotten_ms),
        ("pauses of the collector", figures.pauses, figures.longest_pause_ms),
        ("pauses that looked at everything", figures.whole, figures.longest_pause_ms if figures.whole else 0.0),
        ("the one at rest", 1, figures.rest_ms),
    ):
        print(f"{name:34}{count:>8}{longest:>9.2f}", flush=True)
    return asdict(figures)


if __name__ == "__main__":
    main()
