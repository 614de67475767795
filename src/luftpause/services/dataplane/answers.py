"""Answers that the dataplane gives by itself. Every one of them carries the run's header."""

from math import ceil
from typing import Final

from luftpause.core.dialects.dialect import Dialect
from luftpause.core.dialects.failures import Failure
from luftpause.core.dialects.openai_chat import OpenAiChat
from luftpause.core.dialects.sse import EVENT_STREAM
from luftpause.core.model.ids import RunId
from luftpause.ports.asgi import Line, Send
from luftpause.ports.engines import Header
from luftpause.services.dataplane.headers import RUN_HEADER

JSON: Final = b"application/json"
_CHAT: Final = OpenAiChat()


async def send_body(
    send: Send,
    run: RunId,
    body: bytes,
    *,
    status: int = 200,
    content_type: bytes = JSON,
    more: tuple[Header, ...] = (),
) -> None:
    """Send a whole answer. `more`: further headers."""
    await _send(send, status, body, [(b"content-type", content_type), (RUN_HEADER, run.encode("ascii")), *more])


async def send_failure(
    send: Send, run: RunId, failure: Failure, *, dialect: Dialect = _CHAT, more: tuple[Header, ...] = ()
) -> None:
    """Send a failure in the shape of a dialect. `more`: further headers."""
    headers = [(b"content-type", JSON), (RUN_HEADER, run.encode("ascii")), *more]
    if failure.retry_after_s is not None:
        headers.append((b"retry-after", b"%d" % max(1, ceil(failure.retry_after_s))))
    await _send(send, failure.status, dialect.error(failure), headers)


async def send_nothing(send: Send, run: RunId) -> None:
    """Send 204."""
    await send({"type": "http.response.start", "status": 204, "headers": [(RUN_HEADER, run.encode("ascii"))]})
    await send({"type": "http.response.body", "body": b""})


async def _send(send: Send, status: int, body: bytes, headers: list[Header]) -> None:
    headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def say_last(line: Line, dialect: Dialect, data: bytes, *, has_failed: bool) -> None:
    """End a stream with this; cut it off behind it where its client may pass over the failure that it tells of.

    Behind Gemini's events a failure stands bare. Google's own package for Node finds it there only where it comes by
    itself, the AI SDK never: both would take what came before for the whole.
    """
    if has_failed and dialect.name == "gemini" and dialect.stream_type == EVENT_STREAM:
        line.write(data)
        line.cut()
    else:
        line.end(data)
