import json

import pytest

from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.services.dataplane.routes import TURN_ROUTES, dialect_for, error_at


@pytest.mark.parametrize(
    ("path", "name"), [("/v1/chat/completions", "chat"), ("/v1/messages", "messages"), ("/v1/responses", "responses")]
)
def test_each_dialect_has_its_path(path: str, name: str) -> None:
    dialect = dialect_for(path)
    assert dialect is not None
    assert dialect.name == name
    assert path in TURN_ROUTES


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/messages/", "/v1/models", "/chat/completions"])
def test_elsewhere_no_turns_are_asked_for(path: str) -> None:
    assert dialect_for(path) is None


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/decide", "decide"),
        ("/v1/completions", "completions"),
        ("/v1/embeddings", "embeddings"),
        ("/v1/rerank", "rerank"),
        ("/rerank", "rerank"),
        ("/tokenize", "tokenize"),
        ("/detokenize", "tokenize"),
        ("/v1/messages/count_tokens", "count_tokens"),
    ],
)
def test_what_stands_alone_has_its_path_too_and_is_not_named_as_a_conversation(path: str, name: str) -> None:
    dialect = dialect_for(path)
    assert dialect is not None
    assert dialect.name == name
    assert path not in TURN_ROUTES


@pytest.mark.parametrize(
    ("path", "as_in_messages"),
    [
        ("/v1/messages", True),
        ("/v1/messages/count_tokens", True),
        ("/v1/messages/batches/x", True),
        ("/v1/responses/resp_1", False),
        ("/v1/messagesx", False),
        ("/v1/models", False),
        ("", False),
    ],
)
def test_a_failure_is_told_in_the_dialect_of_its_path(path: str, as_in_messages: bool) -> None:
    told = json.loads(error_at(path, Failure(code=FailureCode.UNAUTHORIZED, message="no")))
    assert ("type" in told) is as_in_messages
    assert told["error"]["type"] == "authentication_error"
    assert told["error"]["message"] == "no"
