"""What an arm does when nothing flows, when a client leaves, and when one reads slowly.

Each is measured on the same processes as the load, before it, so that memory grows from a fresh start.
"""

import hashlib
import http.client
import json
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from benchmarks.doorbench import replies
from benchmarks.doorbench.measure import Effort
from benchmarks.doorbench.peers import Peer, ask, fetch_json
from benchmarks.doorbench.processes import python_module, queued_bytes, resident_bytes
from benchmarks.doorbench.statistics import percentile

from luftpause.testkit.bench.over_http.children import Child

_WARM_REQUESTS = 40
_STREAMS_S = 45.0
_SETTLE_S = 0.4
_SLOW_LIMIT_S = 6.0
_ECHO_BYTES = 262144


class Behaviour(msgspec.Struct, kw_only=True):
    """The figures of one arm; null where this system cannot tell or the arm has no process.

    Attributes:
        same_body: whether a 256 KiB body reached the engine byte for byte.
        idle_streams: how many of the idle streams got their first byte.
        idle_asked: how many were asked for.
        idle_stream_bytes: resident memory per idle stream between the two counts.
        closed_after_ms: median and worst time from the client's close to the engine's, after the first byte.
        closed_before_ms: the same before the first byte.
        never_closed: clients whose upstream was still open when we looked.
        slow_reader_bytes: what the arm itself holds for one client that stopped reading, kernel buffers excluded.
        slow_reader_total_bytes: the same with all kernel buffers between engine and client.
    """

    same_body: bool
    idle_streams: int
    idle_asked: int
    idle_stream_bytes: float | None
    closed_after_ms: tuple[float, float] | None
    closed_before_ms: tuple[float, float] | None
    never_closed: int
    slow_reader_bytes: int | None
    slow_reader_total_bytes: int | None


def _streams(kind: str, peer: Peer, counts: Sequence[int], folder: Path) -> Child:
    host, port = peer.address
    arguments = python_module("benchmarks.doorbench.streams", kind, host, str(port), *map(str, counts))
    return Child(arguments, log=folder / f"streams-{kind}.log", lines=True)


def _same_body(peer: Peer) -> bool:
    body = replies.request_body("echo", size=_ECHO_BYTES, stream=False)
    _, answer = ask(peer.address, body)
    return hashlib.sha256(body).hexdigest().encode() in answer


def _resident(peer: Peer) -> int | None:
    return resident_bytes(peer.child.pid) if peer.child else None


def _idle(peer: Peer, effort: Effort, folder: Path) -> tuple[int, float | None]:
    """Return how many streams were held in the end, and the memory per stream between the two counts."""
    streams = _streams("idle", peer, effort.idle_streams, folder)
    marks: list[tuple[int, int | None]] = []
    try:
        for _ in effort.idle_streams:
            opened = int(json.loads(streams.read_line(_STREAMS_S))["opened"])
            time.sleep(_SETTLE_S)
            marks.append((opened, _resident(peer)))
            streams.say()
    finally:
        streams.stop()
    (few, small), (many, large) = marks
    if small is None or large is None or many <= few:
        return many, None
    return many, (large - small) / (many - few)


def _median_and_worst(delays_ms: list[float]) -> tuple[float, float] | None:
    ordered = sorted(delays_ms)
    return (percentile(ordered, 0.5), ordered[-1]) if ordered else None


def delays_ms(left: dict[str, int], lost: dict[str, int], prefix: str) -> list[float]:
    """Return the ms from each client's leaving to the engine's loss, for exchanges whose id starts with `prefix`."""
    return [(lost[key] - at) / 1e6 for key, at in left.items() if key.startswith(prefix) and key in lost]


def _leaving(peer: Peer, engine: int, effort: Effort, folder: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Return when clients left and when the engine lost them (monotonic ns by id)."""
    forget_facts(engine)
    streams = _streams("leave", peer, (effort.leaves, effort.leaves), folder)
    try:
        left = json.loads(streams.read_line(_STREAMS_S))["left"]
        time.sleep(_SETTLE_S)
        lost = fetch_json(("127.0.0.1", engine), "/bench/facts")["lost"]
    finally:
        streams.stop()
    assert isinstance(lost, dict)
    return left, lost


def forget_facts(engine: int) -> None:
    """Make the engine forget what it saw, so that ids can be used again by the next arm."""
    fetch_json(("127.0.0.1", engine), "/bench/forget")


def _slow_reader(peer: Peer, engines: Sequence[int], folder: Path) -> tuple[int | None, int | None]:
    """Return the bytes that the peer holds in its own memory, and all bytes under way between engine and client."""
    forget_facts(engines[0])
    streams = _streams("slow", peer, (), folder)
    ports = frozenset((*engines, peer.address[1]))
    try:
        read = int(json.loads(streams.read_line(_STREAMS_S))["read"])
        written = before = -1
        deadline = time.monotonic() + _SLOW_LIMIT_S
        while time.monotonic() < deadline:
            time.sleep(_SETTLE_S)
            written = _flood_written(engines[0])
            if written == before:
                break
            before = written
        queued = queued_bytes(ports)
    finally:
        streams.stop()
    total = max(written - read, 0)
    return (max(total - queued, 0) if queued is not None and peer.child else None), total


def _flood_written(engine: int) -> int:
    written = fetch_json(("127.0.0.1", engine), "/bench/facts")["flood_written"]
    assert isinstance(written, int)
    return written


def observe(peer: Peer, engines: Sequence[int], effort: Effort, folder: Path) -> Behaviour:
    """Measure one arm; memory first, while its process is fresh.

    Raises:
        OSError: the arm stopped answering.
    """
    for _ in range(_WARM_REQUESTS):
        ask(peer.address, replies.request_body("one", size=2048))
    idle_streams, idle_bytes = _idle(peer, effort, folder)
    left, lost = _leaving(peer, engines[0], effort, folder)
    slow, slow_total = _slow_reader(peer, engines, folder)
    return Behaviour(
        same_body=_same_body(peer),
        idle_streams=idle_streams,
        idle_asked=effort.idle_streams[-1],
        idle_stream_bytes=idle_bytes,
        closed_after_ms=_median_and_worst(delays_ms(left, lost, "after")),
        closed_before_ms=_median_and_worst(delays_ms(left, lost, "before")),
        never_closed=sum(key not in lost for key in left) + (2 * effort.leaves - len(left)),
        slow_reader_bytes=slow,
        slow_reader_total_bytes=slow_total,
    )


def answers(peer: Peer) -> bool:
    """Return whether an arm still serves, so that a peer that broke is named and not measured."""
    try:
        return ask(peer.address, replies.request_body("one", size=2048))[0] == 200
    except (OSError, http.client.HTTPException):
        return False
