"""The scheduler's HTTP door: its status for programs, its metrics, its health.

Knows how the state is shown as JSON, and nothing of how it comes about.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from luftpause import __version__
from luftpause.core.dialects.failures import Failure, FailureCode, openai_error
from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.family_view import FamilyView, MemberView, view_families
from luftpause.core.scheduling.reasons import explain
from luftpause.core.scheduling.state import State, Window
from luftpause.core.scheduling.view import HeldView, ReplicaView, RunsView, ToolView, view
from luftpause.ports.scheduler import PeerSeen
from luftpause.services.scheduler.models_http import ModelsHttp
from luftpause.services.scheduler.models_json import device_json, model_json
from luftpause.services.scheduler.service import SchedulerService

_WAY_OUT: Final = (
    "this is the scheduler, it answers GET /status, /models, /metrics and /health; models answer at the LLM door,"
    " http://127.0.0.1:8080/v1 unless it was moved"
)
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Json = dict[str, object]


class SchedulerHttp:
    """`GET /status`, `/health` and `/metrics`, and the routes of `ModelsHttp`.

    Args:
        service: whose state is shown.
        peers: returns who holds the scheduler over the link.
    """

    def __init__(self, service: SchedulerService, *, peers: Callable[[], Sequence[PeerSeen]] = tuple) -> None:
        self._service = service
        self._peers = peers

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        return [
            Route("/status", self._get_status, methods=["GET"]),
            Route("/health", _get_health, methods=["GET"]),
            Route("/metrics", self._get_metrics, methods=["GET"]),
            *ModelsHttp(self._service).routes(),
        ]

    def app(self, more_routes: Sequence[BaseRoute] = ()) -> Starlette:
        """Return the application: our routes and others beside them. Who may ask is its guard's business."""
        return Starlette(
            routes=[*self.routes(), *more_routes],
            exception_handlers={404: _not_found, 405: _method_not_allowed},
        )

    async def _get_status(self, _: Request) -> Response:
        service = self._service
        # A state never changes, so a thread may look at thousands of callers while the loop goes on.
        about = {
            "version": __version__,
            "policy": service.settings.policy,
            "uptime_s": round(service.uptime_s, 3),
        }
        return await asyncio.to_thread(_status, about, service.state, service.now(), self._peers())

    async def _get_metrics(self, _: Request) -> Response:
        return Response(self._service.metrics.render(), headers={"content-type": METRICS_TYPE})


def _status(about: Json, state: State, now: Instant, peers: Sequence[PeerSeen]) -> Response:
    """Return what `GET /status` answers; docs/status.schema.json describes it."""
    seen = view(state, now)
    return _json(
        {
            **about,
            "replicas": [_replica(replica) for replica in seen.replicas],
            "held": [_held(held) for held in seen.held],
            "runs": [_runs(runs) for runs in seen.runs],
            "tools": [_tool(tool) for tool in seen.tools],
            "families": [_family(family) for family in view_families(state)],
            "peers": [_peer(peer, state) for peer in peers],
            "models": [model_json(model) for model in seen.models],
            "devices": [device_json(device) for device in seen.devices],
        }
    )


def _replica(replica: ReplicaView) -> Json:
    load = replica.load
    return {
        "name": replica.name,
        "kind": replica.kind.value,
        "models": list(replica.models),
        "engine": replica.engine.value,
        "healthy": replica.healthy,
        "state": replica.phase.value,
        "in_flight": replica.in_flight,
        "capacity": replica.capacity,
        "window": None if replica.window is None else _window(replica.window),
        "kept_for_paused": replica.kept,
        "turns_placed": replica.placed,
        "why": replica.why,
        "load": None if load is None else {"running": load.running, "waiting": load.waiting},
        "foreign": replica.foreign,
        "tokens": None if replica.tokens is None else asdict(replica.tokens),
    }


def _window(window: Window) -> Json:
    return {"turns": window.size, "after": "outage" if window.refused_at is None else "refusal"}


def _held(held: HeldView) -> Json:
    return {
        "class": held.service_class.value,
        "caller": held.caller,
        "count": held.count,
        "oldest_s": round(max(0.0, held.oldest_s), 3),
        "reason": explain(held.reason),
    }


def _runs(runs: RunsView) -> Json:
    return {"phase": runs.phase.value, "class": runs.service_class.value, "count": runs.count}


def _family(family: FamilyView) -> Json:
    return {
        **_member(family.parent),
        "at_work": family.at_work,
        "children": [_member(child) for child in family.children],
        "omitted": family.left_out,
    }


def _member(member: MemberView) -> Json:
    return {
        "run": member.run,
        "phase": None if member.phase is None else member.phase.value,
        "class": None if member.service_class is None else member.service_class.value,
    }


def _tool(tool: ToolView) -> Json:
    return {
        "server": tool.server,
        "tool": tool.tool,
        "returned": tool.returned,
        "running": tool.running,
        "p50_s": round(tool.p50_s, 3),
        "p90_s": round(tool.p90_s, 3),
        "expected_return_s": round(tool.expected_return_s, 3),
    }


def _peer(seen: PeerSeen, state: State) -> Json:
    open_turns = len(state.open_by_peer.get(seen.peer, ()))
    return {"name": seen.peer, "connected": seen.is_connected, "open_turns": open_turns}


async def _get_health(_: Request) -> Response:
    return _json({"status": "ok"})


async def _not_found(request: Request, _: Exception) -> Response:
    return _failure(Failure(code=FailureCode.NOT_FOUND, message=f"nothing at '{request.url.path}': {_WAY_OUT}"))


async def _method_not_allowed(request: Request, error: Exception) -> Response:
    message = f"'{request.url.path}' does not take {request.method}"
    response = _failure(Failure(code=FailureCode.METHOD_NOT_ALLOWED, message=message))
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response


def _json(body: Json) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json", headers={"cache-control": "no-store"})


def _failure(failure: Failure) -> Response:
    return Response(openai_error(failure), status_code=failure.status, media_type="application/json")
