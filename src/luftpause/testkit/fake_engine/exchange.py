"""One HTTP request of the fake engine and its answer, over ASGI. Decides nothing."""

from typing import TypeVar

import msgspec
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, HTTPScope

from luftpause.testkit.fake_engine import wire
from luftpause.testkit.fake_engine.settings import BODY_BYTES_MAX

_Body = TypeVar("_Body")


class RefusedError(Exception):
    """A request that gets an error answer: `status` and an error body."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = wire.error(status, message, code)


class ClientGoneError(Exception):
    """The client left before its request was complete."""


class Exchange:
    """One HTTP request and its answer."""

    def __init__(self, scope: HTTPScope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send

    async def parsed(self, kind: type[_Body]) -> _Body:
        """Read the whole body.

        Raises:
            RefusedError: it is too long, or none of that kind.
            ClientGoneError: it never came whole.
        """
        try:
            return msgspec.json.decode(await self._body(), type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as invalid:
            raise RefusedError(400, f"the body is no valid request: {invalid}") from invalid

    async def gone(self) -> None:
        """Return when the client has left."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def answer(self, status: int, body: bytes, content_type: str = "application/json") -> None:
        """Send a whole answer."""
        await self.begin(status, content_type, len(body))
        await self.write(b"" if self._scope["method"] == "HEAD" else body, last=True)

    async def begin(self, status: int, content_type: str, length: int | None = None) -> None:
        """Send status and headers; without a length the body is chunked."""
        headers = [(b"content-type", content_type.encode())]
        if length is not None:
            headers.append((b"content-length", b"%d" % length))
        if status in (429, 503):
            headers.append((b"retry-after", b"1"))
        await self._send({"type": "http.response.start", "status": status, "headers": headers, "trailers": False})

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Send a part of the body."""
        await self._send({"type": "http.response.body", "body": data, "more_body": not last})

    async def _body(self) -> bytes:
        parts: list[bytes] = []
        length = 0
        more = True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                raise ClientGoneError
            parts.append(message["body"])
            length += len(message["body"])
            if length > BODY_BYTES_MAX:
                raise RefusedError(413, f"the body exceeds {BODY_BYTES_MAX} bytes")
            more = message["more_body"]
        return b"".join(parts)
