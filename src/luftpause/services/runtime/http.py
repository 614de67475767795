"""The runtime's HTTP routes: `/mcp`, the run tree at `/status`, `/health` and `/metrics`.

Tokens, hosts and origins are the business of the guard that assembly wraps around this app. The SDK has a check of its
own, which knows other names than the guard; so it is off, and the app must never be served without the guard.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from luftpause.core.runs.state import Totals
from luftpause.core.runs.view import RunView
from luftpause.services.runtime.server import RuntimeTools
from luftpause.services.runtime.service import RuntimeService


def build_app(service: RuntimeService, version: str) -> Starlette:
    """Return the ASGI app of a started service, to stand behind the door's guard. Its lifespan must run, once."""
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    sessions = StreamableHTTPSessionManager(RuntimeTools(service, version).server, security_settings=security)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with sessions.run():
            yield

    async def status(_request: Request) -> Response:
        return JSONResponse({"runs": [_run(run) for run in service.look_at_all()]})

    async def health(_request: Request) -> Response:
        failure = service.journal_failure
        if failure:
            return JSONResponse({"status": "failed", "error": failure}, status_code=503)
        return JSONResponse({"status": "ok"})

    async def metrics(_request: Request) -> Response:
        return Response(service.metrics_page(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return Starlette(
        routes=[
            Route("/mcp", StreamableHTTPASGIApp(sessions)),
            Route("/status", status),
            Route("/health", health),
            Route("/metrics", metrics),
        ],
        lifespan=lifespan,
    )


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
