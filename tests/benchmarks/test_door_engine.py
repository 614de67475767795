"""The raw engine's replies, byte for byte, over a real socket; and the load client against it."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import ClassVar

import msgspec
import pytest
from benchmarks.doorbench import replies
from benchmarks.doorbench.client import Address
from benchmarks.doorbench.engine import FLOOD_BYTES, EngineConnection, Facts
from benchmarks.doorbench.load import Load, Task
from benchmarks.doorbench.streams import Opening

WITHIN_S = 20


class Watched(EngineConnection):
    """An engine connection that tells when it met back-pressure and when it was lost."""

    paused: ClassVar[asyncio.Event]
    lost: ClassVar[asyncio.Event]

    def pause_writing(self) -> None:
        super().pause_writing()
        Watched.paused.set()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        Watched.lost.set()


def with_engine(scenario: Callable[[Address, Facts], Awaitable[None]]) -> None:
    """Run a scenario against an engine on a free port."""

    async def run() -> None:
        facts, Watched.paused, Watched.lost = Facts(), asyncio.Event(), asyncio.Event()
        server = await asyncio.get_running_loop().create_server(lambda: Watched(facts), "127.0.0.1", 0)
        try:
            await asyncio.wait_for(scenario(server.sockets[0].getsockname(), facts), WITHIN_S)
        finally:
            server.close()
            await server.wait_closed()

    asyncio.run(run())


async def exchange(address: Address, request: bytes, size: int) -> bytes:
    """Send bytes and return the first `size` bytes of the answer."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(request)
        return await reader.readexactly(size)
    finally:
        writer.close()
        await writer.wait_closed()


def chat(reply: str, reply_id: str = "", size: int = 512) -> bytes:
    return replies.chat_request(replies.request_body(reply, size=size, reply_id=reply_id)).for_run(1)


@pytest.mark.parametrize(
    ("reply", "expected"), [("one", replies.ONE), ("json", replies.JSON), ("many", b"".join(replies.MANY))]
)
def test_precomputed_replies_arrive_byte_for_byte(reply: str, expected: bytes) -> None:
    async def scenario(address: Address, _facts: Facts) -> None:
        assert await exchange(address, chat(reply), len(expected)) == expected

    with_engine(scenario)


def test_two_requests_on_one_connection_are_answered_in_order() -> None:
    async def scenario(address: Address, _facts: Facts) -> None:
        expected = replies.JSON + replies.ONE
        assert await exchange(address, chat("json") + chat("one"), len(expected)) == expected

    with_engine(scenario)


def test_a_request_cut_into_single_bytes_is_still_understood() -> None:
    async def scenario(address: Address, _facts: Facts) -> None:
        reader, writer = await asyncio.open_connection(*address)
        for byte in chat("one"):
            writer.write(bytes([byte]))
            await writer.drain()
        assert await reader.readexactly(len(replies.ONE)) == replies.ONE
        writer.close()
        await writer.wait_closed()

    with_engine(scenario)


def test_echo_answers_with_the_hash_of_the_body_it_received() -> None:
    async def scenario(address: Address, _facts: Facts) -> None:
        body = replies.request_body("echo", size=262144)
        digest = hashlib.sha256(body).hexdigest()
        expected = replies.with_length(json.dumps({"sha256": digest, "bytes": len(body)}).encode())
        assert await exchange(address, replies.chat_request(body).for_run(1), len(expected)) == expected

    with_engine(scenario)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/health", replies.HEALTH),
        ("/metrics", replies.METRICS),
        ("/v1/models", replies.MODELS),
        ("/x", replies.NOT_FOUND),
    ],
)
def test_the_engine_answers_probes(path: str, expected: bytes) -> None:
    async def scenario(address: Address, _facts: Facts) -> None:
        assert await exchange(address, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), len(expected)) == expected

    with_engine(scenario)


def test_metrics_say_in_vllm_style_that_nothing_runs_or_waits() -> None:
    text = replies.METRICS.partition(b"\r\n\r\n")[2].decode()
    assert 'vllm:num_requests_running{engine="0",model_name="bench"} 0.0\n' in text
    assert 'vllm:num_requests_waiting{engine="0",model_name="bench"} 0.0\n' in text


def test_a_held_stream_starts_at_once_and_its_loss_is_noted() -> None:
    async def scenario(address: Address, facts: Facts) -> None:
        opening = Opening()
        assert await opening.open(address, chat("idle", "17"))
        assert list(facts.opened) == ["17"]
        left = opening.leave()
        await Watched.lost.wait()
        assert facts.lost["17"] >= left >= facts.opened["17"]

    with_engine(scenario)


def test_a_flood_stops_at_back_pressure_and_counts_what_the_kernel_took() -> None:
    async def scenario(address: Address, facts: Facts) -> None:
        reader, writer = await asyncio.open_connection(*address, limit=1024)
        writer.write(chat("flood", "flood"))
        assert await reader.readexactly(len(replies.STREAM_HEAD)) == replies.STREAM_HEAD
        await Watched.paused.wait()
        assert 0 < facts.flood_written() < FLOOD_BYTES
        writer.transport.abort()

    with_engine(scenario)


def test_bodies_have_the_size_asked_for_and_name_their_reply() -> None:
    for size in (512, 2048, 262144):
        body = replies.request_body("one", size=size, reply_id="a-1")
        assert len(body) == size
        assert json.loads(body)["model"] == replies.MODEL
        marker = replies.MARKER.search(body)
        assert marker is not None
        assert marker.groups() == (b"one", b"a-1")


def test_streams_hold_as_many_chunks_as_their_name_says() -> None:
    assert b"".join(replies.MANY).count(b"\r\ndata: ") == replies.MANY_CHUNKS
    assert replies.ONE.count(b"\r\ndata: ") == 1
    for stream in (replies.ONE, b"".join(replies.MANY)):
        assert stream.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


@pytest.mark.parametrize("rate_per_s", [0, 200])
def test_both_loops_report_whole_answers_and_no_failure(rate_per_s: float, capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario(address: Address, _facts: Facts) -> None:
        task = Task(
            host=address[0],
            port=address[1],
            reply="one",
            body_bytes=2048,
            connections=4,
            warm_s=0.02,
            window_s=0.2,
            rate_per_s=rate_per_s,
        )
        await Load(task).run()

    with_engine(scenario)
    said = [msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in said] == ["measuring", "ended", "measured"]
    figures = said[-1]
    assert figures["done"] > 0
    assert figures["failed"] == 0
    assert 0 < figures["first_p50_us"] <= figures["p50_us"] <= figures["p99_us"]
    assert figures["body_bytes"] % len(replies.TOKEN_EVENT + replies.END_EVENTS) == 0
