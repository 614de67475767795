"""A worker's end of its channel, with the test as its foreman."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from adapters.engine_http.scripted_engine import eventually, run_bounded
from luftpause.adapters.crew import member as member_module
from luftpause.adapters.crew.frames import AnyFrame, Ask, Begin, ChannelError, Opened, Tell, Together, Told, hear, say
from luftpause.adapters.crew.member import Member, enrolled
from luftpause.ports.crew import CrewAwayError
from luftpause.telemetry.exposition import Family, Sample

COUNTS = (Family("n", "", "counter", (Sample("n_total", (), 1.0),)),)


class Played:
    """The foreman's end, and whether the worker saw it go."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.seen_gone = False

    def gone(self) -> None:
        self.seen_gone = True

    async def hears(self, frame: AnyFrame) -> None:
        assert await hear(self.reader) == frame


@contextlib.asynccontextmanager
async def at_work(*first: AnyFrame) -> AsyncIterator[tuple[Member, Played]]:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    played = Played(reader, writer)
    try:
        for frame in first:
            say(writer, frame)
        async with enrolled(theirs.detach(), played.gone) as member:
            yield member, played
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def test_it_takes_its_order_says_that_it_opened_and_tells_what_it_counted() -> None:
    async def story() -> None:
        async with at_work(Begin(b"order")) as (member, foreman):
            assert member.order == b"order"
            say(foreman.writer, Tell(1))
            await foreman.hears(Told(1, ()))
            member.shows(lambda: COUNTS)
            member.opened()
            await foreman.hears(Opened())
            say(foreman.writer, Tell(2))
            await foreman.hears(Told(2, COUNTS))
            assert not foreman.seen_gone

    run_bounded(story())


def test_it_learns_what_all_counted() -> None:
    async def story() -> None:
        async with at_work(Begin(b"")) as (member, foreman):
            first, second = (asyncio.create_task(member.counts()) for _ in range(2))
            await foreman.hears(Ask(1))
            await foreman.hears(Ask(2))
            for frame in (Together(9, ()), Together(2, COUNTS), Together(1, ()), Together(1, COUNTS)):
                say(foreman.writer, frame)
            assert [*await second] == [*COUNTS]
            assert [*await first] == []

    run_bounded(story())


def test_a_foreman_that_does_not_answer_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_module, "COUNTS_S", 0.01)

    async def story() -> None:
        async with at_work(Begin(b"")) as (member, _):
            with pytest.raises(CrewAwayError):
                await member.counts()

    run_bounded(story())


@pytest.mark.parametrize("nonsense", [None, Opened()], ids=["it ends", "it says what only workers say"])
def test_a_foreman_that_is_gone_ends_the_work(nonsense: AnyFrame | None) -> None:
    async def story() -> None:
        async with at_work(Begin(b"")) as (_, foreman):
            if nonsense is None:
                foreman.writer.close()
            else:
                say(foreman.writer, nonsense)
            await eventually(lambda: foreman.seen_gone)

    run_bounded(story())


def test_without_an_order_there_is_no_work() -> None:
    async def story() -> None:
        with pytest.raises(ChannelError, match="no order but Tell"):
            async with at_work(Tell(1)):
                raise AssertionError("it went to work")

    run_bounded(story())
