"""The scheduler's HTTP door: its status for programs, its metrics, its health.

Knows how the state is shown as JSON, and nothing of how it comes about.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.services.scheduler.live_http import LiveHttp, Surroundings
from luftpause.services.scheduler.models_http import ModelsHttp
from luftpause.services.scheduler.models_json import Json
from luftpause.services.scheduler.refusals import refusal
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.scheduler.status_json import Seen, sections

_WAY_OUT: Final = (
    "this is the scheduler, it answers GET /status, /events, /timeline, /models, /metrics and /health; models answer"
    " at the LLM door, http://127.0.0.1:8080/v1 unless it was moved"
)
ALONE: Final = Surroundings()
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class SchedulerHttp:
    """`GET /status`, `/health` and `/metrics`, and the routes of `LiveHttp` and `ModelsHttp`.

    Args:
        service: whose state is shown. It is watched from now on.
        around: what else there is.
    """

    def __init__(self, service: SchedulerService, around: Surroundings = ALONE) -> None:
        self._service = service
        self._live = LiveHttp(service, around)

    def close(self) -> None:
        """End what goes on for as long as somebody looks."""
        self._live.close()

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        return [
            Route("/status", self._get_status, methods=["GET"]),
            Route("/health", _get_health, methods=["GET"]),
            Route("/metrics", self._get_metrics, methods=["GET"]),
            *self._live.routes(),
            *ModelsHttp(self._service).routes(),
        ]

    def app(self, more_routes: Sequence[BaseRoute] = ()) -> Starlette:
        """Return the application: our routes and others beside them. Who may ask is its guard's business."""
        return Starlette(
            routes=[*self.routes(), *more_routes],
            exception_handlers={404: _not_found, 405: _method_not_allowed},
        )

    async def _get_status(self, _: Request) -> Response:
        # A state never changes, so a thread may look at thousands of callers while the loop goes on.
        return await asyncio.to_thread(_status, self._live.about(), self._live.look())

    async def _get_metrics(self, _: Request) -> Response:
        return Response(self._service.metrics.render(), headers={"content-type": METRICS_TYPE})


def _status(about: Json, seen: Seen) -> Response:
    return _json({**about, **sections(seen)})


async def _get_health(_: Request) -> Response:
    return _json({"status": "ok"})


async def _not_found(request: Request, _: Exception) -> Response:
    return refusal(Failure(code=FailureCode.NOT_FOUND, message=f"nothing at '{request.url.path}': {_WAY_OUT}"))


async def _method_not_allowed(request: Request, error: Exception) -> Response:
    message = f"'{request.url.path}' does not take {request.method}"
    response = refusal(Failure(code=FailureCode.METHOD_NOT_ALLOWED, message=message))
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response


def _json(body: Json) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json", headers={"cache-control": "no-store"})
