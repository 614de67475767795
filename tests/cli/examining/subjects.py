"""What the looks of the doctor are tried on: a configuration in a folder, and servers with made-up answers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.cli.examining.findings import Finding, Grade
from luftpause.cli.examining.subject import Subject
from luftpause.config.load import load
from luftpause.testkit.serving import bind, serving, url_of

Result = TypeVar("Result")
LOOK_S = 20.0
"""Nothing here takes so long; a busy machine must not make a look fail."""


@asynccontextmanager
async def subject(
    folder: Path, text: str, env: Mapping[str, str] | None = None, look_s: float = LOOK_S
) -> AsyncIterator[Subject]:
    """A configuration, ready to be looked at."""
    file = folder / "luftpause.toml"
    file.write_text(text, "utf-8")
    engines = HttpEngines(connect_timeout_s=look_s)
    config = load(file, env or {}, {}).config
    try:
        yield Subject(config=config, file=file, named=True, env=env or {}, engines=engines, look_s=look_s)
    finally:
        await engines.close()


def told(
    folder: Path,
    text: str,
    look: Callable[[Subject], Awaitable[list[Finding]]],
    env: Mapping[str, str] | None = None,
    look_s: float = LOOK_S,
) -> list[Finding]:
    """Return what a look says of a configuration."""

    async def story() -> list[Finding]:
        async with asyncio.timeout(50), subject(folder, text, env, look_s) as looked_at:
            return await look(looked_at)

    return asyncio.run(story())


def graded(findings: list[Finding], grade: Grade) -> list[Finding]:
    """Return those of a grade."""
    return [each for each in findings if each.grade is grade]


@asynccontextmanager
async def answering(answers: Mapping[str, tuple[int, str]]) -> AsyncIterator[tuple[str, list[tuple[str, str | None]]]]:
    """A server with these answers by path, 404 elsewhere. Yields its URL, and what it was asked with which token."""
    asked: list[tuple[str, str | None]] = []

    async def answer(request: Request) -> Response:
        asked.append((request.url.path, request.headers.get("authorization")))
        status, body = answers.get(request.url.path, (404, "nothing here"))
        return Response(body, status)

    listener = bind("127.0.0.1", 0)
    url = url_of(listener)
    app = Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])
    async with serving(app, listener, lifespan=False):
        yield url, asked
