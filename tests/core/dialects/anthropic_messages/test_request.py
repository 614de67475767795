import pytest

from core.dialects.anthropic_messages.requests import written
from luftpause.core.dialects.anthropic_messages.request import read_request, unspeakable
from luftpause.core.dialects.request import BadRequestError


def test_a_request_is_read_and_what_is_not_known_is_left_out() -> None:
    request = read_request(written(system="s", later=[1]))

    assert (bytes(request.model), request.system, request.max_tokens) == (b'"m"', "s", 9)
    assert [message.content for message in request.messages] == ["hi"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b'{"model": "m"}', "missing required field `messages`"),
        (b'{"model": "m", "messages": "x"}', r"expected `array`, got `str` - at `\$.messages`"),
        (b'{"model": "m", "messages": [{"role": "user", "content": [{"text": "x"}]}]}', r"`type` - at `\$.messages"),
        (b'{"model": "m", "messages": [], "max_tokens": "9"}', r"at `\$.max_tokens`"),
        (b'{"model": "m", "messages": [], "system": "\\ud800}', "truncated"),
        (b'{"model": "m", "messages": [' + b'{"role": "user", "content": ' + b"[" * 60_000, "."),
        (b"[]", "expected `object`"),
    ],
)
def test_what_has_not_the_shape_is_refused_by_its_place(body: bytes, named: str) -> None:
    with pytest.raises(BadRequestError, match=named):
        read_request(body)


def test_a_refusal_says_why() -> None:
    assert str(unspeakable("this")).startswith("this, which cannot be said in Chat Completions")


def test_half_of_a_surrogate_pair_is_replaced_and_a_whole_one_is_not() -> None:
    body = rb'{"model": "m", "messages": [], "system": "a\ud83d\ude00b\ud83dc\\ud83dd\uDE00e\n"}'

    assert read_request(body).system == "a😀b\ufffdc\\ud83dd\ufffde\n"
