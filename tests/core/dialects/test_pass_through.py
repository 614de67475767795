"""What is read of requests that pass, and that they pass."""

import json

import pytest

from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.dialects.observe import BodyObserver, StreamObserver
from luftpause.core.dialects.pass_through import PassThrough
from luftpause.core.dialects.request import BadRequestError
from luftpause.core.dialects.single_request import Sent
from luftpause.core.model.ids import ReplicaId
from luftpause.core.model.replicas import Endpoint, Placement
from luftpause.core.model.turns import TurnShape

STRICT = PassThrough("embeddings", kind=None, shape=TurnShape.ALONE, needs_model=True)
OPEN = PassThrough("tokenize", kind=None, shape=TurnShape.ERRAND, needs_model=False)


def test_model_and_stream_are_read() -> None:
    peek = STRICT.peek(
        "/v1/x", b'{"model":"m","stream":true,"input":["a"],"tool_calls":[{"id":"x"}]}', with_identity=True
    )
    assert (peek.model, peek.stream, peek.kind, peek.shape) == ("m", True, None, TurnShape.ALONE)
    assert (peek.tool_calls, peek.cache_key) == ((), "")


@pytest.mark.parametrize("body", [b'{"prompt":"x"}', b'{"model":null}'])
def test_a_model_may_be_left_open_only_where_engines_leave_it_open(body: bytes) -> None:
    assert OPEN.peek("/tokenize", body, with_identity=False).model == ""
    with pytest.raises(BadRequestError, match="model"):
        STRICT.peek("/v1/x", body, with_identity=False)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"model":""}', b'{"model":7}', b'{"model":"m","model":"n"}'])
def test_what_cannot_be_routed_is_refused(body: bytes) -> None:
    for dialect in (STRICT, OPEN):
        with pytest.raises(BadRequestError):
            dialect.peek("/v1/x", body, with_identity=False)


def test_the_bytes_go_on_as_they_came() -> None:
    place = Placement(replica=ReplicaId("a"), endpoint=Endpoint(url="u"), why="")
    assert STRICT.sent(b"/v1/x?a=1", b'{ "model":"m" }', place, speaks=False) == Sent(
        target=b"/v1/x?a=1", body=b'{ "model":"m" }'
    )


def test_answers_are_looked_at_and_failures_told_as_openai_has_them() -> None:
    assert isinstance(STRICT.observer(stream=True), StreamObserver)
    assert isinstance(STRICT.observer(stream=False), BodyObserver)
    failure = Failure(code=FailureCode.ENGINE_FAILED, message="broke")
    assert json.loads(STRICT.error(failure))["error"]["message"] == "broke"
    assert STRICT.error_event(failure) == b"data: " + STRICT.error(failure) + b"\n\n"
