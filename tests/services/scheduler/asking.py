"""One request to an ASGI application, without a socket."""

import json
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Scope

from services.scheduler.running import soon


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.body)
        return body


async def ask(app: ASGIApp, path: str, *, method: str = "GET", headers: dict[str, str] | None = None) -> Answer:
    """Send a request without a body; return the whole answer."""
    sent: list[Message] = []
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await soon(app(scope, receive, send))
    return Answer(
        status=sent[0]["status"],
        headers={name.decode(): value.decode() for name, value in sent[0]["headers"]},
        body=b"".join(message.get("body", b"") for message in sent[1:]),
    )
