import asyncio

import msgspec
import pytest
from starlette.requests import Request

from luftpause.ports.asgi import Message
from luftpause.ports.json_bodies import BYTES_MAX, NotJsonError, read_json

JSON = b"application/json"


class Wish(msgspec.Struct, frozen=True):
    name: str


def asked(*pieces: bytes, kind: bytes = JSON) -> Wish:
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> Message:
        return messages.pop(0)

    scope = {"type": "http", "headers": [(b"content-type", kind)]}
    return asyncio.run(read_json(Request(scope, receive), Wish, "wish"))


@pytest.mark.parametrize("kind", [JSON, b"Application/JSON ; charset=utf-8"])
def test_a_body_is_read_in_however_many_pieces_it_comes(kind: bytes) -> None:
    assert asked(b'{"na', b'me": "x", "more": 1}', kind=kind) == Wish("x")


@pytest.mark.parametrize(
    ("pieces", "kind", "status", "said"),
    [
        ([b'{"name": "x"}'], b"text/plain", 415, "send JSON"),
        ([b'{"name": "x"}'], b"", 415, "send JSON"),
        ([b" " * BYTES_MAX, b" "], JSON, 413, f"a wish has at most {BYTES_MAX} bytes"),
        ([b""], JSON, 400, "no wish: "),
        ([b'{"name": 1}'], JSON, 400, "no wish: Expected `str`"),
        ([b'{"name": "\xff"}'], JSON, 400, "no wish: "),
        ([b'{"x": ' + b"[" * 2000], JSON, 400, "no wish: "),
    ],
)
def test_what_is_no_such_json_is_told_from_what_is(pieces: list[bytes], kind: bytes, status: int, said: str) -> None:
    with pytest.raises(NotJsonError, match=said) as refused:
        asked(*pieces, kind=kind)
    assert refused.value.status == status
