"""An answer that becomes longer than its turn is charged for is told of, while it passes."""

import asyncio
from dataclasses import replace

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, chunked, run_bounded
from contracts.offers import offer
from luftpause.core.model.charges import Charge
from luftpause.core.model.ids import PeerId
from luftpause.core.model.replicas import EngineKind
from luftpause.core.scheduling.events import AnswerGrew, FirstTokenSeen, TurnFinished
from luftpause.services.dataplane.growth import NEVER, Growth
from luftpause.services.dataplane.open_turns import OpenTurns
from services.dataplane.door import BODY, PlayedScheduler, open_door
from services.dataplane.test_turn_course_streaming import token_events

CHARGE = Charge(prompt=1000, reply=10, reply_bytes=2000)
EVENTS = token_events(400)
STREAMED = b"".join(EVENTS)
WHOLE = BODY.replace(b'"stream":true', b'"stream":false')


async def streaming(visit: Visit) -> None:
    await visit.request()
    begun = chunked(EVENTS[0], end=False)
    visit.send(begun)
    for at in range(1, len(EVENTS), 40):
        await asyncio.sleep(0)
        piece = b"".join(EVENTS[at : at + 40])
        visit.send(b"%x\r\n%b\r\n" % (len(piece), piece))
    visit.send(b"0\r\n\r\n")


@pytest.mark.usefixtures("each_loop")
@pytest.mark.parametrize("assembled", [False, True], ids=["passed on", "assembled"])
@pytest.mark.parametrize("charge", [CHARGE, Charge(prompt=1000, reply=10), None], ids=["told", "measured", "unasked"])
def test_it_is_told_when_it_outgrows_its_charge_and_how_long_it_became(charge: Charge | None, assembled: bool) -> None:
    async def story() -> None:
        async with open_door(ScriptedEngine(streaming)) as door:
            door.scheduler.charge = charge
            if assembled:
                door.scheduler.engine_kind = EngineKind.LLAMA_CPP
            reply = await door.chat(body=WHOLE if assembled else BODY)
            assert reply.status == 200
            assert assembled or reply.body == STREAMED
            first, *between, last = door.scheduler.reports
            assert isinstance(first, FirstTokenSeen)
            assert isinstance(last, TurnFinished)
            assert last.reply_bytes == (0 if charge is None else len(STREAMED))
            told = [each.reply_bytes for each in between if isinstance(each, AnswerGrew)]
            assert len(told) == len(between)
            assert bool(told) is (charge is CHARGE)
            known = CHARGE
            for size in told:
                assert known.reply_bytes <= size <= len(STREAMED)
                known = known.grown(size, 0)

    run_bounded(story())


@pytest.mark.usefixtures("each_loop")
def test_an_answer_that_comes_whole_is_as_long_as_it_is() -> None:
    async def script(visit: Visit) -> None:
        await visit.request()
        visit.send(answer(b'{"choices":[]}' + b" " * 9000))

    async def story() -> None:
        async with open_door(ScriptedEngine(script)) as door:
            door.scheduler.charge = CHARGE
            await door.chat(body=WHOLE)
            (last,) = door.scheduler.endings
            assert isinstance(last, TurnFinished)
            assert "AnswerGrew" not in door.scheduler.kinds
            assert last.reply_bytes == 0

    run_bounded(story())


def test_it_is_told_each_time_and_of_a_turn_that_is_over_no_more() -> None:
    scheduler = PlayedScheduler()
    turns = OpenTurns(scheduler, peer=PeerId("dp"))
    turn = turns.open()
    growth = Growth(turns, replace(offer(1), turn=turn, reply_max=300), CHARGE)
    assert growth.spoken_of == 2000
    after = growth.grew(2400)
    assert (after, growth.spoken_of) == (CHARGE.grown(2400, 300).reply_bytes, after)
    assert growth.grew(60_000) == NEVER, "it may have 300 tokens, and has them"
    turns.end(turn, None)
    growth.grew(90_000)
    assert scheduler.reports == [AnswerGrew(turn=turn, reply_bytes=2400), AnswerGrew(turn=turn, reply_bytes=60_000)]


def test_where_nobody_asks_nothing_is_ever_long_enough() -> None:
    turns = OpenTurns(PlayedScheduler(), peer=PeerId("dp"))
    assert Growth(turns, offer(1), Charge(prompt=1, reply=1)).spoken_of == NEVER
