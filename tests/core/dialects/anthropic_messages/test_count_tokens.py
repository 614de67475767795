import json

import pytest

from core.dialects.anthropic_messages.requests import HELLO
from luftpause.core.dialects.anthropic_messages.count_tokens import CountTokens, counting_request
from luftpause.core.dialects.dialect import UnfitAnswerError
from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.dialects.request import BadRequestError
from luftpause.core.dialects.single_request import Sent
from luftpause.core.model.ids import ReplicaId
from luftpause.core.model.replicas import Endpoint, EngineKind, Placement, ReplicaKind
from luftpause.core.model.turns import TurnShape


def test_the_question_is_the_conversation_with_one_token_to_answer() -> None:
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    body = {"model": "m", "system": "s", "messages": [HELLO], "tools": tools, "stream": True, "max_tokens": 0}

    question = json.loads(counting_request(json.dumps(body).encode()))

    assert question.pop("tools")[0]["function"]["name"] == "look"
    assert question == {"model": "m", "messages": [{"role": "system", "content": "s"}, HELLO], "max_tokens": 1}


def test_what_cannot_be_said_cannot_be_counted() -> None:
    with pytest.raises(BadRequestError, match="web_search"):
        counting_request(json.dumps({"model": "m", "messages": [HELLO], "tools": [{"type": "web_search_1"}]}).encode())


BODY = json.dumps({"model": "m", "messages": [HELLO]}).encode()
COUNT = CountTokens()


def place(engine: EngineKind, *dialects: str) -> Placement:
    return Placement(replica=ReplicaId("a"), endpoint=Endpoint(url="u"), why="", engine=engine, dialects=dialects)


def test_it_is_an_errand_of_no_run() -> None:
    peek = COUNT.peek("/v1/messages/count_tokens", BODY, with_identity=True)
    assert (peek.model, peek.stream, peek.kind, peek.shape, peek.tool_calls) == (
        "m",
        False,
        ReplicaKind.GENERATIVE,
        TurnShape.ERRAND,
        (),
    )


@pytest.mark.parametrize("engine", EngineKind)
def test_an_engine_that_speaks_messages_gets_the_clients_bytes_at_its_path(engine: EngineKind) -> None:
    target = b"/v1/messages/count_tokens?beta=true"
    assert COUNT.sent(target, BODY, place(engine), speaks=True) == Sent(target=target, body=BODY)


@pytest.mark.parametrize(
    ("engine", "target", "answer"),
    [
        (EngineKind.LLAMA_CPP, b"/v1/chat/completions/input_tokens", b'{"input_tokens": 7}'),
        (EngineKind.VLLM, b"/tokenize", b'{"count": 7, "tokens": [1]}'),
        (EngineKind.SGLANG, b"/v1/chat/completions", b'{"usage": {"prompt_tokens": 7}}'),
        (EngineKind.AUTO, b"/v1/chat/completions", b'{"usage": {"prompt_tokens": 7}}'),
    ],
)
def test_another_engine_is_asked_where_it_counts(engine: EngineKind, target: bytes, answer: bytes) -> None:
    sent = COUNT.sent(b"/v1/messages/count_tokens", BODY, place(engine), speaks=False)
    assert (sent.target, sent.body) == (target, counting_request(BODY))
    assert sent.back is not None
    assert sent.back.feed(answer[:5]) + sent.back.feed(answer[5:]) == b""
    assert sent.back.end() == b'{"input_tokens":7}'


def test_an_answer_that_counts_nothing_is_unfit_and_a_refusal_is_said_as_messages_says_it() -> None:
    back = COUNT.sent(b"", BODY, place(EngineKind.VLLM), speaks=False).back
    assert back is not None
    back.feed(b"<html>")
    with pytest.raises(UnfitAnswerError, match="tells no number of tokens"):
        back.end()
    assert json.loads(back.error(429, b'{"error":{"message":"slow down"}}'))["type"] == "error"
    failure = Failure(code=FailureCode.ENGINE_FAILED, message="broke")
    assert json.loads(COUNT.error(failure))["error"]["message"] == "broke"
    assert b"broke" in COUNT.error_event(failure)
