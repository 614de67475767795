import pytest

from luftpause.core.dialects.dialect import UnfitAnswerError
from luftpause.core.dialects.token_counts import CountBack, counted, counts_at
from luftpause.core.model.replicas import EngineKind


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        (b'{"input_tokens": 37, "object": "response.input_tokens"}', 37),
        (b'{"count": 5, "max_model_len": 9, "tokens": [1, 2, 3, 4, 5]}', 5),
        (b'{"tokens": [28120, 665]}', 2),
        (b'{"id": "c", "choices": [], "usage": {"prompt_tokens": 8, "completion_tokens": 1}}', 8),
        (b'{"input_tokens": 0}', 0),
    ],
)
def test_an_engines_count_is_told(body: bytes, tokens: int) -> None:
    assert counted(body) == tokens


@pytest.mark.parametrize("body", [b"", b"{}", b"<html>", b'{"count": "many"}', b'{"count": -1}', b"[" * 60_000])
def test_an_answer_without_a_count_is_none(body: bytes) -> None:
    assert counted(body) is None


def test_each_engine_is_asked_where_it_counts() -> None:
    assert counts_at(EngineKind.LLAMA_CPP) == b"/v1/chat/completions/input_tokens"
    assert counts_at(EngineKind.VLLM) == b"/tokenize"
    assert counts_at(EngineKind.AUTO) == b"/v1/chat/completions"


def test_a_count_and_a_refusal_are_said_as_the_client_wants_them() -> None:
    back = CountBack(lambda count: b"%d!" % count, lambda status, body: b"%d %b" % (status, body))
    assert back.feed(b'{"count"') + back.feed(b":7}") == b""
    assert (back.end(), back.error(400, b"no"), back.call_ids()) == (b"7!", b"400 no", ())


def test_an_answer_without_a_count_is_unfit() -> None:
    back = CountBack(lambda _: b"", lambda _, body: body)
    back.feed(b"{}")
    with pytest.raises(UnfitAnswerError, match="tells no number of tokens"):
        back.end()
