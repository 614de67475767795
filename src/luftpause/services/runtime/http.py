"""The runtime's HTTP routes: `/mcp`, the run tree at `/status`, `/health` and `/metrics`.

Refusals have the shape of JSON-RPC errors: MCP clients show only the text of those, and OpenAI clients that strayed
here find `error.message` in them too.

Tokens, hosts and origins are the business of the guard that assembly wraps around this app. The SDK has a check of its
own, which knows other names than the guard; so it is off, and the app must never be served without the guard.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import INVALID_REQUEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from luftpause.core.dialects.failures import Failure
from luftpause.core.runs.state import Totals
from luftpause.core.runs.view import RunView
from luftpause.ports.asgi import Receive, Scope, Send, principal_of
from luftpause.services.runtime.server import RuntimeTools
from luftpause.services.runtime.service import RuntimeService

MCP: Final = "/mcp"
PATH_SHOWN_MAX: Final = 100


def build_app(service: RuntimeService, version: str) -> Starlette:
    """Return the ASGI app of a started service, to stand behind the door's guard. Its lifespan must run, once."""
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    sessions = StreamableHTTPSessionManager(RuntimeTools(service, version).server, security_settings=security)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with sessions.run():
            yield

    async def status(request: Request) -> Response:
        principal = principal_of(request.scope)
        seen = service.look_at_all(None if principal.sees_all else principal.name)
        return JSONResponse({"runs": [_run(run) for run in seen.runs]})

    async def health(_request: Request) -> Response:
        failure = service.journal_failure
        if failure:
            return JSONResponse({"status": "failed", "error": failure}, status_code=503)
        return JSONResponse({"status": "ok"})

    async def metrics(_request: Request) -> Response:
        return Response(service.metrics_page(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return Starlette(
        routes=[
            Route(MCP, _Owned(StreamableHTTPASGIApp(sessions))),
            Route("/status", status),
            Route("/health", health),
            Route("/metrics", metrics),
        ],
        lifespan=lifespan,
        exception_handlers={404: _not_found, 405: _method_not_allowed},
    )


class _Owned:
    """Tells the SDK whose a request is: it lets nobody else into a session that somebody opened."""

    def __init__(self, app: StreamableHTTPASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        name = principal_of(scope).name
        user = AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))
        await self._app({**scope, "user": user}, receive, send)


async def _not_found(request: Request, _: Exception) -> Response:
    return _refusal(404, f"there is no route {_shown(request)} here: the MCP door speaks MCP at {MCP}")


async def _method_not_allowed(request: Request, error: Exception) -> Response:
    response = _refusal(405, f"{request.method} is not allowed on {_shown(request)}")
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response


def error_at(_path: str, failure: Failure) -> bytes:
    """Return the body that tells of a failure, at whatever path."""
    return _error(failure.message)


def _refusal(status: int, message: str) -> Response:
    return Response(_error(message), status_code=status, media_type="application/json")


def _error(message: str) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": message}})


def _shown(request: Request) -> str:
    return repr(request.url.path[:PATH_SHOWN_MAX])


def _run(run: RunView) -> dict[str, object]:
    return {
        "handle": run.spawn.run,
        "status": run.status.value,
        "phase": run.phase,
        "model": run.spawn.model,
        "class": run.spawn.service_class.value,
        "caller": run.spawn.caller,
        "parent": run.spawn.parent,
        "children": list(run.children),
        "error": run.error,
        "own": _totals(run.own),
        "subtree": _totals(run.subtree),
    }


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
