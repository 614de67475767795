"""How long one scheduling decision takes: p50, p99 and the longest, microseconds.

Runs a closed loop of agents on queueing replicas, so that about 200 turns are always held, and times every `decide`
in processor time, so that a busy machine does not count, but collector pauses do.
Run with: python benchmarks/decide.py [--runs N] [--replicas N] [--held N] [--events N]
"""

import argparse
import gc
import json
import random
import statistics
import time
from collections import defaultdict

from luftpause.core.model.ids import (
    ANONYMOUS_PRINCIPAL,
    CallerId,
    Instant,
    ModelName,
    PeerId,
    ReplicaId,
    RunId,
    ToolCallId,
    TurnId,
)
from luftpause.core.model.replicas import Endpoint, Load, ReplicaKind, ReplicaSpec
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.actions import Action, PlaceTurn
from luftpause.core.scheduling.decide import decide, next_deadline
from luftpause.core.scheduling.events import Event, ReplicaAdded, ReplicaProbed, TurnArrived, TurnFinished, TurnsRenewed
from luftpause.core.scheduling.invariants import check
from luftpause.core.scheduling.state import Limits, empty_state

MODEL = ModelName("m")
CALLERS = 40


class Loop:
    """Agents that take turns, pause on tools and come back; every decision is timed, nanoseconds by event."""

    def __init__(self, *, runs: int, replicas: int, held: int, seed: int) -> None:
        self.dice = random.Random(seed)
        self.state = empty_state(Limits())
        self.now = 0.0
        self.took: dict[str, list[int]] = defaultdict(list)
        self.flying: list[TurnId] = []
        self.resting = [RunId(f"run-{number}") for number in range(runs)]
        self.run_of: dict[TurnId, RunId] = {}
        self.wanted_held = held
        self.turns = 0
        self.replicas = [ReplicaId(f"replica-{number}") for number in range(replicas)]
        self.cap = max(1, runs // (4 * replicas))
        for replica in self.replicas:
            endpoint = Endpoint(url="http://127.0.0.1:1")
            self.tell(ReplicaAdded(spec=ReplicaSpec(replica=replica, endpoint=endpoint, models=(MODEL,))))
            self.probe(replica)

    def tell(self, event: Event) -> tuple[Action, ...]:
        """Take an event in, with the time that it took."""
        started = time.thread_time_ns()
        decision = decide(self.state, event, Instant(self.now))
        next_deadline(decision.state)
        self.took[type(event).__name__].append(time.thread_time_ns() - started)
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
        turn = TurnId(f"peer.{self.turns}")
        self.run_of[turn] = run
        number = int(run.rpartition("-")[2])
        self.tell(
            TurnArrived(
                turn=turn,
                peer=PeerId("peer"),
                run=run,
                model=MODEL,
                kind=ReplicaKind.GENERATIVE,
                service_class=ServiceClass.INTERACTIVE if number % 10 == 0 else ServiceClass.BATCH,
                caller=CallerId(f"caller-{number % CALLERS}"),
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
        self.tell(TurnFinished(turn=turn, tool_calls=calls))

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


def percentile(values: list[int], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description="Time scheduling decisions.")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--replicas", type=int, default=16)
    parser.add_argument("--held", type=int, default=200)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    loop = Loop(runs=options.runs, replicas=options.replicas, held=options.held, seed=options.seed)
    for _ in range(options.events // 5):
        loop.step()
    check(loop.state)
    loop.took.clear()
    gc.collect()
    gc.freeze()
    for _ in range(options.events):
        loop.step()
    check(loop.state)
    everything = [nanoseconds for times in loop.took.values() for nanoseconds in times]
    report = {
        "runs": len(loop.state.runs),
        "replicas": options.replicas,
        "held": len(loop.state.held),
        "in_flight": len(loop.state.turns),
        "decisions": len(everything),
        "p50_us": percentile(everything, 0.5),
        "p99_us": percentile(everything, 0.99),
        "max_us": max(everything) / 1000,
        "mean_us": round(statistics.fmean(everything) / 1000, 2),
        "by_event": {
            name: {"count": len(times), "p50_us": percentile(times, 0.5), "p99_us": percentile(times, 0.99)}
            for name, times in sorted(loop.took.items())
        },
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
