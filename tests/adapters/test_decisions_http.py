import asyncio
import json
from collections.abc import Awaitable
from dataclasses import replace
from typing import TypeVar

import pytest

from adapters.turns_http.scripted_door import Answer, Asked, Door, hang_up, silence, status
from luftpause.adapters.decisions_http import ANSWER_BYTES_MAX, HttpDecisions
from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.core.model.ids import CallerId, ModelName, PrincipalId
from luftpause.core.model.replicas import Endpoint
from luftpause.core.model.traces import context_in
from luftpause.core.model.turns import ServiceClass
from luftpause.ports.decisions import Decision, DecisionFailedError, DecisionRequest

T = TypeVar("T")
ZOE = PrincipalId("zoe")
PLAIN = DecisionRequest(
    input="it burns", principal=ZOE, caller=CallerId("me"), service_class=ServiceClass.BATCH, labels=None
)
LABELS = DecisionRequest(
    input="it burns",
    principal=ZOE,
    caller=CallerId("me"),
    service_class=ServiceClass.BATCH,
    labels=("fire", "water"),
    model=ModelName("m"),
)


def answer(body: object) -> Answer:
    raw = json.dumps(body).encode() if not isinstance(body, bytes) else body

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(raw)}\r\n\r\n".encode() + raw)
        await writer.drain()

    return write


def decided(request: DecisionRequest, *answers: Answer, timeout_s: float = 20) -> tuple[Decision, Asked]:
    async def ask() -> tuple[Decision, Asked]:
        door = Door(list(answers))
        server = await asyncio.start_server(door.visit, "127.0.0.1", 0)
        engines = HttpEngines()
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            decisions = HttpDecisions(engines, Endpoint(url=url), {ZOE: "zoes"}, timeout_s=timeout_s)
            return await decisions.decide(request), door.asked[0]
        finally:
            await engines.close()
            server.close()
            for visit in door.visits:
                visit.cancel()
            await asyncio.gather(*door.visits, return_exceptions=True)

    return in_time(ask())


def in_time(work: Awaitable[T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(30):
            return await work

    return asyncio.run(bounded())


def test_labels_are_scored_by_name() -> None:
    body = {"label": "fire", "probabilities": {"fire": 0.9}, "unscored": ["water"], "model": "m", "usage": None}
    decision, asked = decided(LABELS, answer(body))
    assert decision == Decision(label="fire", probabilities={"fire": 0.9}, unscored=["water"], model="m")
    assert asked.line == "POST /v1/decide HTTP/1.1"
    assert asked.json == {"input": "it burns", "labels": ["fire", "water"], "model": "m"}
    assert (asked.headers["authorization"], asked.headers["x-luftpause-caller"]) == ("Bearer zoes", "me")
    assert asked.headers["x-luftpause-class"] == "batch"


def test_the_trace_of_who_asks_goes_along() -> None:
    trace = context_in("00-" + "a" * 32 + "-" + "b" * 16 + "-00")
    _, asked = decided(replace(LABELS, trace=trace), answer({"label": "fire", "probabilities": {}}))
    assert asked.headers["traceparent"] == "00-" + "a" * 32 + "-" + "b" * 16 + "-00"
    _, asked = decided(LABELS, answer({"label": "fire", "probabilities": {}}))
    assert "traceparent" not in asked.headers


def test_a_classifier_names_its_likeliest_label() -> None:
    body = {"object": "list", "model": "sorter", "data": [{"index": 0, "label": "urgent", "probs": [0.25, 0.75]}]}
    decision, asked = decided(PLAIN, answer(body))
    assert decision == Decision(label="urgent", probabilities={"urgent": 0.75}, model="sorter")
    assert asked.json == {"input": "it burns"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (status(404, "no SinglePass replica serves a model"), "no SinglePass replica serves a model"),
        (status(503), "the LLM door answered with status 503"),
        (hang_up, "the LLM door did not answer: "),
        (answer({"data": []}), "the classifier named no label"),
        (answer(b"oops"), "the LLM door's answer cannot be read"),
        (answer(b'{"data": [' + b" " * ANSWER_BYTES_MAX), "the LLM door's answer cannot be read"),
    ],
)
def test_what_goes_wrong_is_told_in_words(given: Answer, told: str) -> None:
    with pytest.raises(DecisionFailedError, match=told):
        decided(PLAIN, given)


def test_a_door_that_says_nothing_is_not_waited_for_for_ever() -> None:
    with pytest.raises(DecisionFailedError, match=r"within 0\.2 s"):
        decided(PLAIN, silence, timeout_s=0.2)
