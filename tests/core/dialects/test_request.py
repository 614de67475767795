import pytest
from msgspec import Raw

from luftpause.core.dialects.request import (
    BadRequestError,
    cache_key_in,
    check_text,
    model_in,
    read_members,
    stream_in,
)

BODY = b'{"model": "m", "input": [1, {"a": "b"}], "stream": true, "prompt_cache_key": "k", "other": 1}'


def test_only_what_is_wanted_is_decoded() -> None:
    members = read_members(BODY, ("model", "stream"), "input")

    assert members == {"input": Raw(b'[1, {"a": "b"}]'), "model": "m", "stream": True}
    assert (model_in(members), stream_in(members)) == ("m", True)


@pytest.mark.parametrize(
    "body",
    [
        b'{"input": 1, "input": 2}',
        b'{"model": "m", "x": "\\ud800", "model": "n"}',
        b'{"":0,"":0}',
        b'{"":0,"a":1,"":0}',
        b'{"k":"x","\\u006b":1}',
    ],
)
def test_a_repeated_key_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequestError, match="more than once"):
        read_members(body, ("model",), "input")


@pytest.mark.parametrize(
    ("key", "expected"), [("k", "k"), (None, ""), (7, ""), ("x" * 257, ""), ("\ud800", ""), (["k"], "")]
)
def test_a_cache_key_is_a_text_of_bounded_length(key: object, expected: str) -> None:
    assert cache_key_in({"prompt_cache_key": key}) == expected


@pytest.mark.parametrize(
    "body", [b"{}", b'{"":0}', b'{"a":{"a":1,"b":{"a":2}},"b":":"}', b'{ "k" : "k:k" , "l":[":"] }\n']
)
def test_keys_that_are_repeated_elsewhere_than_at_the_top_do_no_harm(body: bytes) -> None:
    assert read_members(body, (), "input") == {}


@pytest.mark.parametrize("body", [b'{"x":"\xff"}', b'{"x":"\xed\xa0\x80"}'])
def test_what_is_to_be_written_anew_must_be_text(body: bytes) -> None:
    with pytest.raises(BadRequestError, match="no UTF-8 at byte 6"):
        check_text(body)
    check_text('{"x":"é"}'.encode())
