"""The runtime's HTTP routes: `/mcp`, the run tree at `/status`, decisions at `/approvals`, `/health` and `/metrics`.

Refusals have the shape of JSON-RPC errors: MCP clients show only the text of those, and OpenAI clients that strayed
here find `error.message` in them too.

Tokens, hosts and origins are the business of the guard that assembly wraps around this app. The SDK has a check of its
own, which knows other names than the guard; so it is off, and the app must never be served without the guard.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Final

import msgspec
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from luftpause.core.dialects.failures import Failure
from luftpause.core.model.ids import RunId
from luftpause.core.runs.events import Origin
from luftpause.core.runs.state import Totals
from luftpause.core.runs.view import BudgetView, PendingApproval, RunView
from luftpause.ports.asgi import Message, Receive, Scope, Send, headers_of, principal_of
from luftpause.services.runtime.approvals_http import ApprovalsHttp
from luftpause.services.runtime.early_stream import EarlyStream
from luftpause.services.runtime.mcp_door.arguments import RUNS_SHOWN
from luftpause.services.runtime.mcp_door.calls import GONE_KEY
from luftpause.services.runtime.mcp_door.runtime_door import DoorParts, RuntimeDoor
from luftpause.services.runtime.rpc_errors import error_body, refusal
from luftpause.services.runtime.service import OVERVIEW_MAX, RuntimeService
from luftpause.telemetry.exposition import rendered

MCP: Final = "/mcp"
PATH_SHOWN_MAX: Final = 100
TASK_SHOWN_MAX: Final = 200
_REFUSALS: Final = {413: f"the request is longer than {DEFAULT_MAX_REQUEST_BODY_SIZE} bytes"}
ARGUMENTS_SHOWN_MAX: Final = 2000
"""Characters of a waiting call's arguments, which its person is to see before deciding."""


def build_app(service: RuntimeService, parts: DoorParts) -> Starlette:
    """Return the ASGI app of a started service, to stand behind the door's guard. Its lifespan must run, once."""
    door = RuntimeDoor(service, parts)
    return app_around(service, door.server, door.close)


def app_around(service: RuntimeService, server: Server[object], close: Callable[[], Awaitable[None]]) -> Starlette:
    """Return the same around any MCP server. `close` is called when the app's lifespan ends."""
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    sessions = StreamableHTTPSessionManager(server, security_settings=security)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        try:
            async with sessions.run():
                yield
        finally:
            await close()

    async def status(request: Request) -> Response:
        principal = principal_of(request.scope)
        limit = request.query_params.get("limit", str(RUNS_SHOWN))
        if not (limit.isascii() and limit.isdecimal() and len(limit) <= 9 and 1 <= int(limit) <= OVERVIEW_MAX):
            return refusal(400, f"limit is a whole number from 1 to {OVERVIEW_MAX}")
        seen = service.glance(None if principal.sees_all else principal.name, int(limit))
        shown = await seen.each(lambda run: (_run(run), run.run, run.origin_run))
        runs, origins = [row for row, _, _ in shown], _origins((run, above) for _, run, above in shown)
        scope = "all" if principal.sees_all else "own"
        body = msgspec.json.encode({"scope": scope, "runs": runs, "omitted": seen.left_out, "origins": origins})
        return Response(body, media_type="application/json")

    async def health(_request: Request) -> Response:
        failure = service.journal_failure
        if failure:
            return JSONResponse({"status": "failed", "error": failure}, status_code=503)
        return JSONResponse({"status": "ok"})

    async def metrics(_request: Request) -> Response:
        return Response(rendered(service.counts()), media_type="text/plain; version=0.0.4; charset=utf-8")

    return Starlette(
        routes=[
            Route(MCP, _Owned(StreamableHTTPASGIApp(sessions))),
            Route("/status", status),
            Route("/approvals", ApprovalsHttp(service.approvals).decide, methods=["POST"]),
            Route("/health", health),
            Route("/metrics", metrics),
        ],
        lifespan=lifespan,
        exception_handlers={404: _not_found, 405: _method_not_allowed},
    )


class _Owned:
    """Tells the SDK whose a request is, and the tools when its client leaves.

    The SDK lets nobody else into a session that somebody opened, and keeps to itself that a client of one left.
    """

    def __init__(self, app: StreamableHTTPASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        name = principal_of(scope).name
        user = AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))
        gone = asyncio.Event()

        async def heard() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                gone.set()
            return message

        async def answer(to: Send) -> None:
            # Nothing is kept to be told again, and without a store the SDK does not even answer who names a place.
            headers = [header for header in scope["headers"] if header[0] != b"last-event-id"]
            await self._app({**scope, "headers": headers, "user": user, GONE_KEY: gone}, heard, _as_json_rpc(to))

        await (EarlyStream(send).around(answer) if _may_wait(scope) else answer(send))


def _may_wait(scope: Scope) -> bool:
    """Whether a request that stands alone may be answered late. In a session the SDK opens the stream at once."""
    headers = headers_of(scope)
    takes_streams = b"text/event-stream" in headers.get(b"accept", b"")
    return headers.get(b"mcp-method") == b"tools/call" and takes_streams


def _as_json_rpc(send: Send) -> Send:
    """Return what sends refusals that the SDK writes as plain text in the shape that clients show."""
    refused: Message | None = None

    async def sent(message: Message) -> None:
        nonlocal refused
        if message["type"] == "http.response.start" and message["status"] >= 400:
            headers = dict(message["headers"])
            if headers.get(b"content-type", b"").startswith(b"text/plain") or b"content-type" not in headers:
                refused = message
                return
        if refused is None:
            await send(message)
            return
        start, refused = refused, None
        text = _REFUSALS.get(start["status"]) or message.get("body", b"").decode("utf-8", "replace") or "refused"
        body = error_body(text)
        length = str(len(body)).encode()
        headers = {**dict(start["headers"]), b"content-type": b"application/json", b"content-length": length}
        await send({**start, "headers": list(headers.items())})
        await send({"type": "http.response.body", "body": body})

    return sent


async def _not_found(request: Request, _: Exception) -> Response:
    return refusal(404, f"there is no route {_shown(request)} here: the MCP door speaks MCP at {MCP}")


async def _method_not_allowed(request: Request, error: Exception) -> Response:
    response = refusal(405, f"{request.method} is not allowed on {_shown(request)}")
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response


def error_at(_path: str, failure: Failure) -> bytes:
    """Return the body that tells of a failure, at whatever path."""
    return error_body(failure.message)


def _shown(request: Request) -> str:
    return repr(request.url.path[:PATH_SHOWN_MAX])


def _run(run: RunView) -> dict[str, object]:
    return {
        "handle": run.run,
        "task": run.spawn.task[:TASK_SHOWN_MAX],
        "status": run.status.value,
        "phase": run.phase,
        "model": run.model,
        "class": run.spawn.service_class.value,
        "principal": run.spawn.principal,
        "caller": run.spawn.caller,
        "tree": run.tree,
        "parent": run.parent,
        "children": list(run.children),
        "origin": None if run.spawn.origin is None else _origin(run.spawn.origin, run.origin_run),
        "error": run.error,
        "pending_approvals": [_pending(pending) for pending in run.pending_approvals],
        "budget": None if run.budget is None else _budget(run.budget),
        "own": _totals(run.own),
        "subtree": _totals(run.subtree),
    }


def _pending(pending: PendingApproval) -> dict[str, object]:
    arguments = pending.arguments[:ARGUMENTS_SHOWN_MAX]
    return {"call": pending.call, "tool": pending.tool, "arguments": arguments, "reason": pending.reason}


def _origin(origin: Origin, run: RunId | None) -> dict[str, object]:
    """Return what of the LLM door spawned a run, and the run there, None while that is not found."""
    return {"door": "llm", "run": run, "tool_call": origin.tool_call, "thread": origin.thread or None}


def _origins(runs: Iterable[tuple[RunId, RunId | None]]) -> list[dict[str, object]]:
    """Return the runs of the LLM door that stand above these, each with those that it spawned."""
    spawned: dict[RunId, list[RunId]] = {}
    for run, above in runs:
        if above is not None:
            spawned.setdefault(above, []).append(run)
    return [{"door": "llm", "run": run, "children": children} for run, children in spawned.items()]


def _budget(budget: BudgetView) -> dict[str, object]:
    return {"limits": asdict(budget.limits), "used": asdict(budget.used), "exceeded": budget.exceeded}


def _totals(totals: Totals) -> dict[str, object]:
    return {
        "turns": totals.turns,
        "tool_calls": totals.tool_calls,
        "failed_tool_calls": totals.failed_tool_calls,
        "prompt_tokens": totals.prompt_tokens,
        "completion_tokens": totals.completion_tokens,
        "turn_seconds": totals.turn_ms / 1000,
        "tool_seconds": totals.tool_ms / 1000,
    }
