"""The rounds: every shape of load through every arm, interleaved, with the arm's CPU over exactly the same window.

Arms follow each other inside a round and the order turns from round to round, so that a machine that drifts moves all
of them alike. What a figure means against a target is `targets`' business.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
from benchmarks.doorbench import replies
from benchmarks.doorbench.load import Task
from benchmarks.doorbench.peers import Peer
from benchmarks.doorbench.processes import cpu_s

from luftpause.testkit.bench.over_http.children import Child

Say = Callable[[str], None]
_STARTING_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One kind of load.

    Attributes:
        paced: whether the window is the longer one of open loops.
        event_bytes: body bytes of one event when events are counted; 0 otherwise.
    """

    key: str
    title: str
    reply: str
    connections: int
    body_bytes: int = 2048
    stream: bool = True
    rate_per_s: float = 0
    stagger_s: float = 0
    event_bytes: int = 0

    @property
    def paced(self) -> bool:
        """Whether it needs the longer window."""
        return self.rate_per_s > 0 or self.event_bytes > 0


SHAPES = (
    Shape(key="one", title="stream of one chunk, 32 connections, saturated", reply="one", connections=32),
    Shape(key="many", title="stream of 64 chunks, 32 connections, saturated", reply="many", connections=32),
    Shape(key="json", title="2 KiB JSON answer, 32 connections, saturated", reply="json", connections=32, stream=False),
    Shape(
        key="body",
        title="256 KiB request body, 16 connections, saturated",
        reply="json",
        connections=16,
        body_bytes=262144,
        stream=False,
    ),
    Shape(key="paced", title="one chunk, paced 150/s on 16 connections", reply="one", connections=16, rate_per_s=150),
    Shape(
        key="chunks",
        title="100 streams of 50 chunks/s",
        reply="paced",
        connections=100,
        stagger_s=0.3,
        event_bytes=len(replies.TOKEN_EVENT),
    ),
)


KEYS = frozenset(shape.key for shape in SHAPES)


class Sample(msgspec.Struct, kw_only=True):
    """One shape through one arm in one round. Microseconds unless the name says otherwise; null is not measured.

    Attributes:
        cpu_us: CPU of the peer's process tree per completed request.
        cpu_us_per_event: the same per event of a paced stream.
        cores_busy: CPU seconds of the peer per second.
        late_p99_us: how late the load client itself sent.
    """

    requests_per_s: float
    failed: int
    p50_us: float | None
    p99_us: float | None
    first_p50_us: float | None
    first_p99_us: float | None
    late_p50_us: float | None
    late_p99_us: float | None
    cpu_us: float | None = None
    cpu_us_per_event: float | None = None
    cores_busy: float | None = None


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What the load process reports of one window."""

    event: str
    seconds: float
    done: int
    failed: int
    body_bytes: int
    p50_us: float | None
    p99_us: float | None
    first_p50_us: float | None
    first_p99_us: float | None
    late_p50_us: float | None
    late_p99_us: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long a run may take: rounds, seconds of warm-up and of both kinds of window, and the whole budget.

    Attributes:
        idle_streams: the two numbers of held streams between which memory is compared.
        leaves: clients that leave, mid-stream and before the first byte each.
        skip: keys of shapes that are left out.
        observes: whether what arms do when nothing flows, or clients leave or read slowly, is measured, too.
    """

    rounds: int
    warm_s: float
    closed_s: float
    paced_s: float
    budget_s: float
    idle_streams: tuple[int, int]
    leaves: int
    skip: frozenset[str] = frozenset()
    observes: bool = True


QUICK = Effort(
    rounds=2,
    warm_s=0.1,
    closed_s=0.5,
    paced_s=0.9,
    budget_s=55,
    idle_streams=(50, 250),
    leaves=8,
    skip=frozenset({"json"}),
)
FULL = Effort(rounds=7, warm_s=0.3, closed_s=1.5, paced_s=3.0, budget_s=375, idle_streams=(200, 1000), leaves=20)


def sample_of(measured: Measured, *, cpu: float | None, event_bytes: int) -> Sample:
    """Turn a window's counts and the CPU seconds the peer spent in it into a sample."""
    events = measured.body_bytes / event_bytes if event_bytes else 0
    return Sample(
        requests_per_s=measured.done / measured.seconds,
        failed=measured.failed,
        p50_us=measured.p50_us,
        p99_us=measured.p99_us,
        first_p50_us=measured.first_p50_us,
        first_p99_us=measured.first_p99_us,
        late_p50_us=measured.late_p50_us,
        late_p99_us=measured.late_p99_us,
        cpu_us=cpu * 1e6 / measured.done if cpu is not None and measured.done else None,
        cpu_us_per_event=cpu * 1e6 / events if cpu is not None and events else None,
        cores_busy=cpu / measured.seconds if cpu is not None else None,
    )


def _event(load: Child, expected: str, timeout_s: float) -> str:
    line = load.read_line(timeout_s)
    if json.loads(line)["event"] != expected:
        raise RuntimeError(f"the load process said {line!r} where {expected} was expected")
    return line


def measure(load: Child, peer: Peer, shape: Shape, effort: Effort) -> Sample:
    """Run one shape through one arm once."""
    host, port = peer.address
    few = peer.connections_max > 0  # so few requests that a short window would count a handful
    window_s = effort.paced_s if shape.paced or few else effort.closed_s
    task = Task(
        host=host,
        port=port,
        reply=shape.reply,
        body_bytes=shape.body_bytes,
        connections=min(shape.connections, peer.connections_max or shape.connections),
        warm_s=max(effort.warm_s, shape.stagger_s + 0.05 if shape.stagger_s else 0),
        window_s=window_s,
        stream=shape.stream,
        rate_per_s=shape.rate_per_s,
        stagger_s=shape.stagger_s,
    )
    load.say(msgspec.json.encode(task).decode())
    pid = peer.child.pid if peer.child else None
    _event(load, "measuring", _STARTING_S)
    before = cpu_s(pid) if pid else None
    _event(load, "ended", window_s + _STARTING_S)
    after = cpu_s(pid) if pid else None
    measured = msgspec.json.decode(_event(load, "measured", _STARTING_S), type=Measured)
    _event(load, "drained", _STARTING_S)
    cpu = after - before if before is not None and after is not None else None
    return sample_of(measured, cpu=cpu, event_bytes=shape.event_bytes)


def order_of(arms: Sequence[str], round_index: int) -> list[str]:
    """Return the arms in the order of a round: the same circle, started one further each time."""
    start = round_index % len(arms)
    return [*arms[start:], *arms[:start]]


def run_rounds(
    load: Child, peers: Sequence[Peer], effort: Effort, *, until: float, say: Say
) -> dict[str, dict[str, list[Sample]]]:
    """Run rounds until they are done or the next would end after `until` (monotonic seconds); at least one.

    Returns:
        Samples by shape, then by arm, one a round.
    """
    shapes = [shape for shape in SHAPES if shape.key not in effort.skip]
    samples: dict[str, dict[str, list[Sample]]] = {shape.key: {peer.name: [] for peer in peers} for shape in shapes}
    by_name = {peer.name: peer for peer in peers}
    for index in range(effort.rounds):
        began = time.monotonic()
        for shape in shapes:
            for name in order_of(list(by_name), index):
                peer = by_name[name]
                if peer.shapes is None or shape.key in peer.shapes:
                    samples[shape.key][name].append(measure(load, peer, shape, effort))
            say(f"round {index + 1}/{effort.rounds}  {shape.title}")
        if time.monotonic() * 2 - began > until:
            break
    return samples
