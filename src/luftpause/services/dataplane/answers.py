"""Answers that the dataplane gives by itself. Every one of them carries the run's header."""

from typing import Final

from luftpause.core.dialects.failures import Failure, openai_error
from luftpause.core.model.ids import RunId
from luftpause.ports.asgi import Send
from luftpause.ports.engines import Header
from luftpause.services.dataplane.headers import RUN_HEADER

JSON: Final = b"application/json"


async def send_body(send: Send, run: RunId, body: bytes, *, status: int = 200, content_type: bytes = JSON) -> None:
    """Send a whole answer."""
    await _send(send, status, body, [(b"content-type", content_type), (RUN_HEADER, run.encode("ascii"))])


async def send_failure(send: Send, run: RunId, failure: Failure, *, more: tuple[Header, ...] = ()) -> None:
    """Send a failure in the shape of Chat Completions. `more`: further headers."""
    headers = [(b"content-type", JSON), (RUN_HEADER, run.encode("ascii")), *more]
    await _send(send, failure.status, openai_error(failure), headers)


async def send_nothing(send: Send, run: RunId) -> None:
    """Send 204."""
    await send({"type": "http.response.start", "status": 204, "headers": [(RUN_HEADER, run.encode("ascii"))]})
    await send({"type": "http.response.body", "body": b""})


async def _send(send: Send, status: int, body: bytes, headers: list[Header]) -> None:
    headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
