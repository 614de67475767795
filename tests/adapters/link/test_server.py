"""The scheduler's end against clients that keep no rules."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.engine_http.scripted_engine import eventually
from adapters.link.raw_peers import RESYNC, RawClient, raw_client
from contracts.fake_desk import FakeDesk
from contracts.offers import MODEL, PEER, PRINCIPAL, offer, spec
from contracts.recording_desk import RecordingDesk
from contracts.relay import bounded
from luftpause.adapters.link import conversation as conversation_module
from luftpause.adapters.link import server as server_module
from luftpause.adapters.link.codec import FRAME_BYTES_MAX, report_frame, to_bytes
from luftpause.adapters.link.frames import (
    LINK_PROTOCOL,
    Accepted,
    Acknowledged,
    AddReplica,
    Admit,
    ClientFrame,
    EndRun,
    Failed,
    Fault,
    Goodbye,
    Hello,
    ListModels,
    Models,
    Placed,
    Refused,
    Resync,
    RunGone,
    Welcome,
)
from luftpause.adapters.link.overtaking import Overtaking
from luftpause.adapters.link.server import Graces, Insiders, LinkServer
from luftpause.core.model.ids import PeerId, PrincipalId, RunId
from luftpause.core.model.refusals import RefusalReason
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import FirstTokenSeen, PeerResynced, TurnAbandoned, TurnFinished, TurnReport
from luftpause.ports.scheduler import SchedulerDesk, Ticket

HELLO = Hello(LINK_PROTOCOL, PEER)


@contextlib.asynccontextmanager
async def served(desk: SchedulerDesk, *, token: str = "", grace_s: float = 30.0) -> AsyncIterator[LinkServer]:
    server = LinkServer(desk, token=token, graces=Graces(peer_s=grace_s))
    await server.start()
    try:
        yield server
    finally:
        await server.close()


def with_two_clients(test: Callable[[LinkServer, RawClient], Awaitable[None]], *, token: str = "") -> None:
    """Run a test with one client, and hold that another, well-behaved one is served before and after it."""

    async def story() -> None:
        async with (
            served(FakeDesk([spec()]), token=token) as server,
            raw_client(server.port) as good,
            raw_client(server.port) as bad,
        ):
            await good.greet("good", token)
            await test(server, bad)
            good.say(ListModels(1))
            assert await good.hear() == Models(1, (MODEL,))

    bounded(story)


ILL_FORMED = {
    "garbage": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "announced"),
    "an oversized hello": (to_bytes(Hello(LINK_PROTOCOL, PeerId("x" * 5000))), "announced"),
    "no hello": (to_bytes(ListModels(1)), "before the hello"),
    "an empty name": (to_bytes(Hello(LINK_PROTOCOL, PeerId(""))), "name"),
    "a long name": (to_bytes(Hello(LINK_PROTOCOL, PeerId("x" * 129))), "name"),
    "a server's frame": (to_bytes(Welcome(LINK_PROTOCOL, "me")), "not a frame"),
}


@pytest.mark.parametrize("name", ILL_FORMED)
def test_a_stranger_that_talks_nonsense_is_told_and_hung_up_on(name: str, caplog: pytest.LogCaptureFixture) -> None:
    data, cause = ILL_FORMED[name]

    async def story(_: LinkServer, bad: RawClient) -> None:
        bad.say(data, b"and more", data)
        (fault,) = await bad.hear_all()
        assert isinstance(fault, Fault)
        assert fault.code == "ill_formed"
        assert cause in fault.message

    with_two_clients(story)
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == ["peer_parted"]


AFTER_HELLO: dict[str, tuple[list[ClientFrame | bytes], str]] = {
    "garbage": ([b"\0\0\0\1\xc1"], "not a frame"),
    "an oversized frame": ([(FRAME_BYTES_MAX + 1).to_bytes(4, "big")], "announced"),
    "an unknown tag": ([b"\0\0\0\5\x91\xa3zzz"], "not a frame"),
    "a second hello": ([HELLO], "a second hello"),
    "a second resync": ([RESYNC, RESYNC], "a second resync"),
    "an offer before the resync": ([Admit(offer(1))], "before the resync"),
    "a report before the resync": ([report_frame(1, FirstTokenSeen(turn=offer(1).turn))], "before the resync"),
    "another's offer": ([RESYNC, Admit(replace(offer(1), peer=PeerId("good")))], "another peer"),
    "an unknown report": ([RESYNC, b"\0\0\0\x0e\x94\xa6report\x01\xa3odd\x80"], "unknown report"),
}


@pytest.mark.parametrize("name", AFTER_HELLO)
def test_a_peer_that_breaks_the_rules_is_told_and_hung_up_on(name: str) -> None:
    frames, cause = AFTER_HELLO[name]

    async def story(_: LinkServer, bad: RawClient) -> None:
        bad.say(HELLO, *frames)
        welcome, fault = await bad.hear_all()
        assert isinstance(welcome, Welcome)
        assert isinstance(fault, Fault)
        assert fault.code == "ill_formed"
        assert cause in fault.message

    with_two_clients(story)


@pytest.mark.parametrize("token", ["", "wrong", "open sesame!", "\u00e9"])
def test_a_wrong_token_is_refused_before_anything_is_told(token: str) -> None:
    async def story(_: LinkServer, bad: RawClient) -> None:
        bad.say(Hello(LINK_PROTOCOL, PEER, token), RESYNC, ListModels(1))
        (fault,) = await bad.hear_all()
        assert isinstance(fault, Fault)
        assert fault.code == "bad_token"

    with_two_clients(story, token="open sesame")


def test_another_protocol_is_refused_with_both_numbers() -> None:
    async def story(_: LinkServer, bad: RawClient) -> None:
        bad.say(Hello(LINK_PROTOCOL + 1, PEER))
        (fault,) = await bad.hear_all()
        assert fault == Fault(
            "wrong_protocol", f"the scheduler speaks protocol {LINK_PROTOCOL}, the peer {LINK_PROTOCOL + 1}"
        )

    with_two_clients(story)


@settings(max_examples=15, deadline=None)
@given(st.binary(min_size=1, max_size=400), st.booleans())
def test_any_bytes_at_all_harm_nobody_else(data: bytes, greeted: bool) -> None:
    async def story(_: LinkServer, bad: RawClient) -> None:
        if greeted:
            await bad.greet()
        bad.say(data)
        bad.close()

    with_two_clients(story)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=6))
def test_a_conversation_is_the_same_however_its_bytes_were_split(cuts: list[int]) -> None:
    async def story(_: LinkServer, bad: RawClient) -> None:
        stream = b"".join(to_bytes(frame) for frame in (HELLO, RESYNC, Admit(offer(1, run="r")), ListModels(2)))
        position = turn = 0
        while position < len(stream):
            step = cuts[turn % len(cuts)]
            bad.say(stream[position : position + step])
            await asyncio.sleep(0)
            position += step
            turn += 1
        heard = [await bad.hear() for _ in range(4)]
        assert isinstance(heard[0], Welcome)
        assert heard[1] == Accepted(offer(1).turn, RunId("r"))
        assert isinstance(heard[2], Placed)
        assert heard[3] == Models(2, (MODEL,))

    with_two_clients(story)


def test_half_a_frame_and_a_dead_line_harm_nobody() -> None:
    async def story(_: LinkServer, bad: RawClient) -> None:
        await bad.greet()
        bad.say(to_bytes(Admit(offer(1)))[:-5])
        bad.close()

    with_two_clients(story)


def test_a_connection_without_a_hello_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(server: LinkServer, _: RawClient) -> None:
        monkeypatch.setattr(conversation_module, "HELLO_S", 0.02)  # for who comes now: the others have said theirs
        async with raw_client(server.port) as silent:
            (fault,) = await silent.hear_all()
            assert isinstance(fault, Fault)
            assert fault.code == "no_hello"

    with_two_clients(story)


def test_more_connections_than_the_bound_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "CONNECTIONS_MAX", 2)

    async def story(server: LinkServer, bad: RawClient) -> None:
        await bad.greet()
        async with raw_client(server.port) as third:
            (fault,) = await third.hear_all()
            assert isinstance(fault, Fault)
            assert fault.code == "too_many_connections"

    with_two_clients(story)


def test_a_newer_connection_of_a_peer_replaces_the_older_and_keeps_its_turns() -> None:
    async def story() -> None:
        desk = RecordingDesk(FakeDesk([spec()], holding=True))
        async with served(desk, grace_s=0.0) as server, raw_client(server.port) as older:
            await older.greet()
            older.say(Admit(offer(1)))
            assert isinstance(await older.hear(), Accepted)
            async with raw_client(server.port) as newer:
                await newer.greet()
                (fault,) = await older.hear_all()
                assert isinstance(fault, Fault)
                assert fault.code == "replaced"
                newer.say(ListModels(1))
                assert await newer.hear() == Models(1, (MODEL,))
                assert PEER not in desk.calls

    bounded(story)


def test_a_peer_that_came_back_is_not_lost_when_its_grace_would_have_ended(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        desk = RecordingDesk(FakeDesk([spec()]))
        async with served(desk, grace_s=0.5) as server:
            async with raw_client(server.port) as first:
                await first.greet()
            async with raw_client(server.port) as again:
                await again.greet()
                async with raw_client(server.port) as other:
                    await other.greet("other")
                await desk.until(lambda: "other" in desk.calls)  # it left later, so its grace ended later
                assert PEER not in desk.calls

    bounded(story)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_peers_are_seen_while_they_are_there_and_in_their_grace() -> None:
    async def story() -> None:
        desk = RecordingDesk(FakeDesk([spec()]))
        async with served(desk, grace_s=30.0) as server:
            assert server.peers() == ()
            async with raw_client(server.port) as leaving, raw_client(server.port) as staying:
                await leaving.greet("b")
                await staying.greet("a")
                assert [(seen.peer, seen.is_connected) for seen in server.peers()] == [("a", True), ("b", True)]
                staying.say(Goodbye())
                await desk.until(lambda: "a" in desk.calls)
                assert [(seen.peer, seen.is_connected) for seen in server.peers()] == [("b", True)]
            await eventually(lambda: not server.peers()[0].is_connected)
            assert [(seen.peer, seen.is_connected) for seen in server.peers()] == [("b", False)]

    bounded(story)


def test_a_goodbye_ends_the_peers_turns_at_once() -> None:
    async def story() -> None:
        desk = RecordingDesk(FakeDesk([spec()]))
        async with served(desk) as server, raw_client(server.port) as client:
            await client.greet()
            client.say(report_frame(1, FirstTokenSeen(turn=offer(1).turn)), Goodbye())
            assert await client.hear_all() == [Acknowledged(1)]
            await desk.until(lambda: desk.calls[-1] == PEER)

    bounded(story)


def test_closing_tells_the_desk_nothing_and_ends_every_connection() -> None:
    async def story() -> None:
        desk = RecordingDesk(FakeDesk([spec()]))
        async with served(desk, grace_s=0.0) as server:
            async with raw_client(server.port) as client, raw_client(server.port) as gone:
                await client.greet()
                await gone.greet("gone")
                await server.close()
                assert await client.hear_all() == []
            assert [call for call in desk.calls if not isinstance(call, PeerResynced)] == []
            await server.close()

    bounded(story)


def test_a_taken_port_is_an_error() -> None:
    async def story() -> None:
        async with served(FakeDesk([])) as server:
            with pytest.raises(OSError, match="address already in use"):
                await LinkServer(FakeDesk([]), port=server.port).start()

    bounded(story)


class BrokenDesk(FakeDesk):
    """Raises whenever it can."""

    def admit(self, offer: TurnOffer) -> Ticket:
        raise RuntimeError("secret detail")

    def report(self, report: TurnReport) -> None:
        raise RuntimeError("secret detail")

    def resync(self, report: PeerResynced) -> None:
        raise RuntimeError("secret detail")

    def end_run(self, principal: PrincipalId, run: RunId) -> bool:
        raise RuntimeError("secret detail")


def test_a_desk_that_raises_fails_that_frame_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with served(BrokenDesk([spec()])) as server, raw_client(server.port) as client:
            await client.greet()
            client.say(
                Admit(offer(1)),
                report_frame(3, TurnFinished(turn=offer(1).turn)),
                EndRun(4, PRINCIPAL, RunId("r")),
                ListModels(5),
            )
            refused = await client.hear()
            assert isinstance(refused, Refused)
            assert refused.refusal.reason is RefusalReason.SCHEDULER_FAULT
            failed = await client.hear()
            assert isinstance(failed, Failed)
            assert failed.request == 4
            assert "secret" not in refused.refusal.message + failed.message
            assert await client.hear() == Models(5, (MODEL,))
            assert await client.hear() == Acknowledged(3)

    bounded(story)
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == ["desk_failed"] * 4


def test_a_placement_that_breaks_or_leaves_the_queue_is_told_as_a_refusal() -> None:
    class Desk(FakeDesk):
        def admit(self, offer: TurnOffer) -> Ticket:
            ticket = super().admit(offer)
            tickets.append(ticket)
            return ticket

    tickets: list[Ticket] = []

    async def story() -> None:
        async with served(Desk([spec()], holding=True)) as server, raw_client(server.port) as client:
            await client.greet()
            client.say(Admit(offer(1)), Admit(offer(2)))
            assert isinstance(await client.hear(), Accepted)
            assert isinstance(await client.hear(), Accepted)
            tickets[0].placement.set_exception(RuntimeError("broke"))
            tickets[1].placement.cancel()
            broke, left = await client.hear(), await client.hear()
            assert isinstance(broke, Refused)
            assert broke.refusal.reason is RefusalReason.SCHEDULER_FAULT
            assert isinstance(left, Refused)
            assert left.refusal.reason is RefusalReason.EXPIRED

    bounded(story)


def test_an_offer_that_overtakes_another_peers_report_is_one_of_the_run_that_it_tells_of() -> None:
    """The client went to the next door with the answer in its hand, and was faster than the word of the first."""

    async def story() -> None:
        desk = FakeDesk([spec()])
        first, then = offer(1), replace(offer(2, tool_calls=("call_1",)), peer=PeerId("door-2"))
        async with served(desk) as server, raw_client(server.port) as one, raw_client(server.port) as two:
            await one.greet()
            await two.greet("door-2")
            server._overtaking = Overtaking(desk.lacks_word, wait_s=30.0)
            one.say(Admit(first))
            accepted = await one.hear()
            assert isinstance(accepted, Accepted)
            two.say(Admit(then), ListModels(1))
            assert await two.hear() == Models(1, (MODEL,)), "the offer waits"
            one.say(report_frame(1, TurnFinished(turn=first.turn, tool_calls=then.keys.tool_calls)))
            known = await two.hear()
            assert isinstance(known, Accepted)
            assert known.run == accepted.run

    bounded(story)


def test_an_offer_waits_for_no_word_where_nobody_else_could_say_it() -> None:
    async def story() -> None:
        desk = FakeDesk([spec()])
        async with served(desk) as server, raw_client(server.port) as alone:
            server._overtaking = Overtaking(desk.lacks_word, wait_s=30.0)
            await alone.greet()
            alone.say(Admit(offer(1, tool_calls=("call_1",))))
            assert isinstance(await alone.hear(), Accepted)

    bounded(story)


def test_an_offer_that_waits_for_a_word_is_admitted_once_and_goes_with_its_peer() -> None:
    async def story() -> None:
        desk = RecordingDesk(FakeDesk([spec()]))
        waits = replace(offer(2, tool_calls=("call_1",)), peer=PeerId("door-2"))
        async with served(desk) as server, raw_client(server.port) as one, raw_client(server.port) as two:
            await one.greet()
            await two.greet("door-2")
            two.say(Admit(waits))
            assert isinstance(await two.hear(), Accepted), "nobody had a word to say"
            assert [each.turn for each in desk.offers()] == [waits.turn]
            server._overtaking = Overtaking(desk.lacks_word, wait_s=30.0)
            lost = replace(waits, turn=offer(3).turn)
            two.say(Admit(lost), report_frame(1, TurnAbandoned(turn=lost.turn)), ListModels(1))
            two_heard = [await two.hear(), await two.hear()]
            assert any(isinstance(each, Models) for each in two_heard) or isinstance(await two.hear(), Models)
            one.say(report_frame(1, TurnFinished(turn=offer(9).turn)))
            one.say(ListModels(1))
            assert isinstance(await one.hear(), Models)
            assert [each.turn for each in desk.offers()] == [waits.turn], "its client left"

    bounded(story)


def test_a_client_that_does_not_read_is_cut_off_and_others_are_served(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(conversation_module, "UNSENT_MAX", 1_000_000)

    async def story(server: LinkServer, bad: RawClient) -> None:
        await bad.greet("slow")
        async with raw_client(server.port) as launcher:
            await launcher.greet("launcher")
            launcher.say(AddReplica(1, spec("big", *(f"model-{n}-{'x' * 90}" for n in range(1000)))))
            await launcher.hear()
            bad.say(*(ListModels(n) for n in range(1000)))
            heard = await bad.hear_all()
            assert len(heard) < 1000
            launcher.say(EndRun(2, PRINCIPAL, RunId("r")))
            assert await launcher.hear() == RunGone(2, ended=False)
            launcher.say(Resync((), (), last=False))  # ends this client, and with it the big list is of no use
            launcher.say(Hello(LINK_PROTOCOL, PEER))

    async def inside() -> None:
        async with served(FakeDesk([spec()])) as server, raw_client(server.port) as bad:
            await story(server, bad)

    bounded(inside)
    assert "peer_too_slow" in [record.message for record in caplog.records]


class Register:
    """Notes who is connected."""

    def __init__(self, *known: str) -> None:
        self.known = tuple(map(PeerId, known))
        self.noted: list[tuple[str, ...]] = []

    def peers_changed(self, peers: Sequence[PeerId]) -> None:
        self.noted.append(tuple(peers))


def test_who_is_connected_is_noted_and_who_is_remembered_is_waited_for() -> None:
    async def story() -> None:
        register = Register("one", "two")
        server = LinkServer(FakeDesk([spec()]), graces=Graces(resync_s=30.0), insiders=Insiders(register=register))
        await server.start()
        try:
            async with raw_client(server.port) as one, raw_client(server.port) as two:
                await one.greet("one")
                one.say(Admit(replace(offer(1), peer=PeerId("one"))), ListModels(1))
                assert await one.hear() == Models(1, (MODEL,)), "the offer waits for the other one"
                await two.greet("two")
                accepted = await one.hear()
                assert isinstance(accepted, Accepted)
                assert accepted.turn == offer(1).turn
                two.say(Goodbye())
                await two.gone()
                one.say(ListModels(2))  # its answer comes after the server has seen the other one leave
                while await one.hear() != Models(2, (MODEL,)):
                    pass
                assert register.noted == [("one", "two"), ("one", "two"), ("one",)]
        finally:
            await server.close()

    bounded(story)
