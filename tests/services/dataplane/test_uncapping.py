"""An engine that refuses our cap is asked once more without it; what a client said itself is nobody's business."""

import json
from collections.abc import Callable

import pytest

from adapters.engine_http.scripted_engine import ScriptedEngine, Visit, answer, run_bounded
from adapters.raw_client import fetch
from luftpause.core.model.charges import Charge
from luftpause.core.scheduling.events import TurnFailed, TurnFinished
from services.dataplane.door import JSON, open_door

CHARGE = Charge(prompt=10, reply=10, reply_cap=4096)
CHOICES = [{"message": {"content": "and so"}, "finish_reason": "length"}]
CUT = json.dumps({"choices": CHOICES, "usage": {"prompt_tokens": 9, "completion_tokens": 4096}}).encode()
REFUSED = b'{"error":{"message":"max_tokens is too large"}}'


def engine(asked: list[dict[str, object]], refuses: Callable[[dict[str, object]], bool]) -> ScriptedEngine:
    async def script(visit: Visit) -> None:
        while True:
            body = json.loads((await visit.request()).body)
            asked.append(body)
            no = refuses(body)
            visit.send(answer(REFUSED if no else CUT, status=b"400 Bad Request" if no else b"200 OK"))

    return ScriptedEngine(script)


async def ask(door_url: str, path: bytes = b"/v1/chat/completions", **members: object) -> tuple[int, dict[str, object]]:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], **members}).encode()
    reply = await fetch(door_url, b"POST", path, JSON, body=body)
    said: dict[str, object] = json.loads(reply.body)
    return reply.status, said


@pytest.mark.usefixtures("each_loop")
def test_an_engine_is_told_our_cap_and_an_answer_that_ends_there_says_so() -> None:
    async def story() -> None:
        asked: list[dict[str, object]] = []
        async with open_door(engine(asked, lambda body: False)) as door:
            door.scheduler.charge = CHARGE
            status, said = await ask(door.url)
            assert (status, said) == (200, json.loads(CUT))
            (ended,) = door.scheduler.endings
            assert isinstance(ended, TurnFinished)
            assert (ended.finish, ended.reply_cap) == ("length", 4096)
        assert [body.get("max_tokens") for body in asked] == [4096]

    run_bounded(story())


@pytest.mark.usefixtures("each_loop")
def test_one_that_refuses_it_is_asked_without_it() -> None:
    async def story() -> None:
        asked: list[dict[str, object]] = []
        async with open_door(engine(asked, lambda body: "max_tokens" in body)) as door:
            door.scheduler.charge = CHARGE
            status, _ = await ask(door.url)
            assert status == 200
            (ended,) = door.scheduler.endings
            assert isinstance(ended, TurnFinished)
            assert ended.reply_cap == 0, "it was not told"
        assert [body.get("max_tokens") for body in asked] == [4096, None]

    run_bounded(story())


@pytest.mark.usefixtures("each_loop")
def test_one_that_refuses_the_request_itself_has_the_last_word() -> None:
    async def story() -> None:
        asked: list[dict[str, object]] = []
        async with open_door(engine(asked, lambda body: True)) as door:
            door.scheduler.charge = CHARGE
            status, said = await ask(door.url)
            assert (status, said) == (400, json.loads(REFUSED))
            (ended,) = door.scheduler.endings
            assert isinstance(ended, TurnFailed)
        assert len(asked) == 2

    run_bounded(story())
