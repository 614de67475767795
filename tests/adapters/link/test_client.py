"""The client against schedulers that refuse, break, fall silent or die."""

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.link import half_scheduler
from adapters.link.raw_peers import raw_server
from adapters.link.test_server import served
from contracts.fake_desk import FakeDesk
from contracts.offers import MODEL, PEER, PRINCIPAL, offer, spec
from contracts.recording_desk import RecordingDesk
from contracts.relay import Relay, bounded
from luftpause.adapters.link import dialer as dialer_module
from luftpause.adapters.link.client import RemoteLink
from luftpause.adapters.link.codec import to_bytes
from luftpause.adapters.link.frames import LINK_PROTOCOL, Accepted, Done, Failed, Fault, Models, Welcome
from luftpause.adapters.link.server import LinkServer
from luftpause.core.model.ids import PeerId, RunId
from luftpause.core.model.refusals import RefusalReason
from luftpause.core.scheduling.events import TurnFinished, TurnsRenewed
from luftpause.ports.scheduler import LinkFaultError, LinkRefusedError, TurnRefusedError

WELCOME = to_bytes(Welcome(LINK_PROTOCOL, "raw"))


@contextlib.asynccontextmanager
async def linked(port: int, *, token: str = "") -> AsyncIterator[RemoteLink]:
    link = RemoteLink("127.0.0.1", port, peer=PEER, token=token)
    await link.start()
    try:
        yield link
    finally:
        await link.close()


def test_a_wrong_token_fails_those_who_wait_until_it_is_right_again(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        desk = FakeDesk([spec()], holding=True)
        async with Relay() as relay, served(desk, token="old") as server:
            relay.target = server.port
            async with linked(relay.port, token="old") as link:
                held = await link.admit(offer(1))
                relay.target = None
                await server.close()
                waits = asyncio.create_task(link.admit(offer(2)))
                asks = asyncio.create_task(link.models())
                async with served(desk, token="new") as stranger:
                    relay.target = stranger.port
                    with pytest.raises(LinkRefusedError, match="does not accept this token"):
                        await waits
                    with pytest.raises(LinkRefusedError):
                        await asks
                    with pytest.raises(LinkRefusedError):
                        await link.ready()
                    with pytest.raises(LinkRefusedError):
                        await link.admit(offer(3))
                    relay.target = None
                    assert not held.placement.done()
                desk.release()
                async with served(desk, token="old") as friend:
                    relay.target = friend.port
                    assert (await held.placement).replica == "one"
                    await link.ready()
                    assert set(desk.placed) == {offer(1).turn}

    bounded(story)
    refused = [record for record in caplog.records if getattr(record, "kind", "") == "bad_token"]
    assert len(refused) == 1


class Misbehaving:
    """A scheduler that says these bytes on its first connections, and then hangs up."""

    def __init__(self, said: bytes, *, times: int) -> None:
        self.said = said
        self.times = times
        self.seen = 0
        self.enough = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.seen += 1
        if self.seen == self.times:
            self.enough.set()
        await reader.read(1)
        writer.write(self.said)
        await writer.drain()
        writer.close()


TROUBLE = {
    "garbage": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "ill_formed"),
    "an old scheduler": (to_bytes(Fault("wrong_protocol", "I speak 0")), "wrong_protocol"),
    "a new scheduler": (to_bytes(Welcome(LINK_PROTOCOL + 1, "x")), "wrong_protocol"),
    "an answer before the welcome": (to_bytes(Done(1)), "ill_formed"),
    "nothing": (b"", "lost"),
    "garbage after the welcome": (WELCOME + b"\0\0\0\1\xc1", "ill_formed"),
}


@pytest.mark.parametrize("name", TROUBLE)
def test_callers_wait_while_a_scheduler_misbehaves_and_the_log_has_it_once(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    said, kind = TROUBLE[name]

    async def story() -> None:
        bad = Misbehaving(said, times=3)
        desk = FakeDesk([spec()])
        async with Relay() as relay, raw_server(bad) as bad_port, served(desk) as good:
            relay.target = bad_port
            async with linked(relay.port) as link:
                waits = asyncio.create_task(link.admit(offer(1)))
                await bad.enough.wait()
                assert not waits.done()
                relay.target = good.port
                assert (await (await waits).placement).replica == "one"

    bounded(story)
    told = [getattr(record, "kind", "") for record in caplog.records if record.message == "link_down"]
    assert told.count(kind) == 1
    assert set(told) <= {kind, "lost"}  # the relay hangs up when it changes its target


def test_a_scheduler_that_never_welcomes_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialer_module, "DIAL_S", 0.05)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay.target = good_port

    relay = Relay()
    good_port = 0

    async def story() -> None:
        nonlocal good_port
        async with relay, raw_server(silent) as port, served(FakeDesk([spec()])) as good:
            good_port = good.port
            relay.target = port
            async with linked(relay.port) as link:
                assert await link.models() == (MODEL,)

    bounded(story)


async def logged(caplog: pytest.LogCaptureFixture) -> None:
    """Wait until something was logged."""
    there = asyncio.Event()

    class Bell(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            there.set()

    bell = Bell()
    logging.getLogger("luftpause.link").addHandler(bell)
    try:
        async with asyncio.timeout(10):
            if not caplog.records:
                await there.wait()
    finally:
        logging.getLogger("luftpause.link").removeHandler(bell)


def test_an_unreachable_scheduler_is_logged_once_and_found_when_it_comes(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with served(FakeDesk([spec()])) as server:
            port = server.port
        async with linked(port) as link:
            asks = asyncio.create_task(link.models())
            await logged(caplog)
            server = LinkServer(FakeDesk([spec()]), port=port)
            await server.start()
            assert await asks == (MODEL,)
            await link.close()
            await server.close()

    bounded(story)
    told = [getattr(record, "kind", "") for record in caplog.records if record.message == "link_down"]
    assert told == ["unreachable"]


def test_the_pauses_between_tries_grow_to_what_is_set_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    enough = asyncio.Event()
    sleep = asyncio.sleep

    async def spy(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 8:
            enough.set()
        await sleep(0)

    async def story() -> None:
        async with served(FakeDesk([spec()])) as server:
            port = server.port
        monkeypatch.setattr("luftpause.adapters.link.dialer.asyncio.sleep", spy)
        link = RemoteLink("127.0.0.1", port, peer=PEER, retry_s=2.0)
        await link.start()
        await enough.wait()
        await link.close()

    bounded(story)
    assert pauses[0] <= 0.1
    assert 1.0 <= max(pauses) <= 2.0


def test_a_host_that_is_no_name_is_trouble_like_any_other(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        link = RemoteLink("a..b", 1, peer=PEER)
        await link.start()
        await logged(caplog)
        await link.close()

    bounded(story)
    assert [record.message for record in caplog.records] == ["link_down"]


def test_closing_ends_our_turns_over_there_and_turns_waiters_away() -> None:
    async def story() -> None:
        desk = RecordingDesk(FakeDesk([spec()], holding=True))
        async with served(desk) as server:
            link = RemoteLink("127.0.0.1", server.port, peer=PEER)
            await link.start()
            ticket = await link.admit(offer(1))
            link.report(TurnsRenewed(turns=(offer(1).turn,)))
            await link.close()
            await desk.until(lambda: desk.calls[-1] == PEER)
            assert TurnsRenewed(turns=(offer(1).turn,)) in desk.calls
            with pytest.raises(TurnRefusedError) as refused:
                await ticket.placement
            assert refused.value.refusal.reason is RefusalReason.SHUTTING_DOWN
            with pytest.raises(TurnRefusedError):
                await link.admit(offer(2))
            with pytest.raises(LinkFaultError):
                await link.models()
            with pytest.raises(LinkFaultError):
                await link.ready()
            await link.close()

    bounded(story)


def test_closing_while_the_scheduler_is_away_turns_waiters_away() -> None:
    async def story() -> None:
        async with Relay() as relay, linked(relay.port) as link:
            waits = asyncio.create_task(link.admit(offer(1)))
            asks = asyncio.create_task(link.models())
            waits_for_link = asyncio.create_task(link.ready())
            await asyncio.sleep(0)
            await link.close()
            with pytest.raises(TurnRefusedError, match="shutting down"):
                await waits
            with pytest.raises(LinkFaultError):
                await asks
            with pytest.raises(LinkFaultError):
                await waits_for_link

    bounded(story)


def test_an_offer_in_another_peers_name_or_too_long_for_the_link_never_leaves() -> None:
    async def story() -> None:
        desk = RecordingDesk(FakeDesk([spec()]))
        async with served(desk) as server, linked(server.port) as link:
            with pytest.raises(ValueError, match="door-1"):
                await link.admit(replace(offer(1), peer=PeerId("other")))
            with pytest.raises(TurnRefusedError, match="does not fit"):
                await link.admit(offer(2, tool_calls=("x" * 1_100_000,)))
            with pytest.raises(TurnRefusedError, match="does not fit"):
                await link.admit(offer(3, model="\ud800"))
            with pytest.raises(LinkFaultError, match="at most"):
                await link.end_run(PRINCIPAL, RunId("x" * 1_100_000))
            await (await link.admit(offer(4))).placement
            assert [call.turn for call in desk.offers()] == [offer(4).turn]

    bounded(story)


def test_an_answer_that_fits_no_question_is_a_fault() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(WELCOME + to_bytes(Failed(1, "broken")))
        for request in (2, 4, 5):
            writer.write(to_bytes(Models(request, ())))
        writer.write(to_bytes(Done(3)) + to_bytes(Done(99)))
        writer.write(to_bytes(Accepted(offer(99).turn, RunId("nobody's"))))
        await writer.drain()

    async def story() -> None:
        async with raw_server(answer) as port:
            link = RemoteLink("127.0.0.1", port, peer=PEER)
            calls = [link.models(), link.end_run(PRINCIPAL, RunId("r")), link.models()]
            calls += [link.add_replica(spec()), link.remove_replica(spec().replica)]
            tasks = [asyncio.ensure_future(call) for call in calls]
            await asyncio.sleep(0)
            await link.start()
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(answer) for answer in answers] == [LinkFaultError] * 5
            assert "broken" in str(answers[0])
            await link.close()

    bounded(story)


def test_a_scheduler_killed_in_the_middle_of_a_frame_loses_nothing() -> None:
    async def story() -> None:
        program = await asyncio.create_subprocess_exec(
            sys.executable, str(Path(half_scheduler.__file__)), stdout=asyncio.subprocess.PIPE
        )
        assert program.stdout is not None
        desk = RecordingDesk(FakeDesk([spec()]))
        try:
            port = int(await program.stdout.readline())
            async with Relay(port) as relay, served(desk) as server, linked(relay.port) as link:
                ticket = await link.admit(offer(1))
                link.report(TurnFinished(turn=offer(7).turn))
                relay.target = server.port
                program.kill()
                assert (await ticket.placement).endpoint == spec().endpoint
                assert ticket.run == "promised"
                assert [call.keys.run for call in desk.offers()] == ["promised"]
        finally:
            with contextlib.suppress(ProcessLookupError):
                program.kill()
            await program.wait()

    bounded(story)
