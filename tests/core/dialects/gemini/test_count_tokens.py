import json

import pytest

from core.dialects.gemini.exchanges import Object, said, text, user, written
from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.dialects.gemini.count_tokens import GeminiCountTokens
from luftpause.core.dialects.request import BadRequestError
from luftpause.core.model.ids import ModelName, ReplicaId
from luftpause.core.model.replicas import Endpoint, EngineKind, Placement, ReplicaKind
from luftpause.core.model.turns import TurnShape

COUNT = GeminiCountTokens()
PATH = "/v1beta/models/m:countTokens"


def place(engine: EngineKind = EngineKind.VLLM) -> Placement:
    return Placement(replica=ReplicaId("a"), endpoint=Endpoint(url="u"), why="", engine=engine, model=ModelName("m"))


def asked(body: bytes) -> Object:
    chat: Object = json.loads(COUNT.sent(PATH.encode(), body, place(), speaks=False).body)
    return chat


def test_it_is_an_errand_of_no_run() -> None:
    peek = COUNT.peek(PATH, written(), with_identity=True)
    assert (peek.model, peek.stream, peek.kind, peek.shape) == ("m", False, ReplicaKind.GENERATIVE, TurnShape.ERRAND)
    assert peek.tool_calls == ()


@pytest.mark.parametrize("body", [b"", b"[]", b'{"contents":[],"contents":[]}'])
def test_what_is_no_request_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequestError):
        COUNT.peek(PATH, body, with_identity=False)


@pytest.mark.parametrize("member", ["generateContentRequest", "generate_content_request"])
def test_the_question_is_the_conversation_with_one_token_to_answer(member: str) -> None:
    tools = [{"functionDeclarations": [{"name": "look"}]}]
    expected = {**said(tools=tools), "max_tokens": 1}
    assert asked(written(tools=tools)) == expected
    inner = {"model": "models/m", "contents": [user(text("hi"))], "tools": tools}
    assert asked(json.dumps({member: inner}).encode()) == expected


@pytest.mark.parametrize(
    ("engine", "target", "answer"),
    [
        (EngineKind.LLAMA_CPP, b"/v1/chat/completions/input_tokens", b'{"input_tokens": 7}'),
        (EngineKind.VLLM, b"/tokenize", b'{"count": 7, "tokens": [1]}'),
        (EngineKind.SGLANG, b"/v1/chat/completions", b'{"usage": {"prompt_tokens": 7}}'),
    ],
)
def test_an_engine_is_asked_where_it_counts(engine: EngineKind, target: bytes, answer: bytes) -> None:
    sent = COUNT.sent(PATH.encode(), written(), place(engine), speaks=False)
    assert sent.target == target
    assert sent.back is not None
    sent.back.feed(answer)
    assert sent.back.end() == b'{"totalTokens":7}'


def test_failures_have_the_shape_of_the_dialect() -> None:
    back = COUNT.sent(b"", written(), place(), speaks=False).back
    assert back is not None
    assert json.loads(back.error(429, b"slow down"))["error"]["status"] == "RESOURCE_EXHAUSTED"
    failure = Failure(code=FailureCode.ENGINE_FAILED, message="broke")
    assert json.loads(COUNT.error(failure))["error"]["code"] == 502
