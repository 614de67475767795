"""The scheduler's HTTP door for models: which there are, what their engines write, and what an operator wants of them.

A GET changes nothing. Names are looked up as those of turns are: a model's own name, an alias or its pattern.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.model.ids import LauncherId, ModelName
from luftpause.core.model.refusals import no_such_model
from luftpause.core.scheduling.residency.events import LoadAsked, PinAsked, UnloadAsked
from luftpause.core.scheduling.residency.view import ModelView, view_devices, view_models
from luftpause.core.scheduling.services import offered, own_name
from luftpause.services.scheduler.models_json import Json, device_json, model_json
from luftpause.services.scheduler.refusals import refusal
from luftpause.services.scheduler.service import SchedulerService

NAME_SHOWN_MAX: Final = 100
_LOOK_S: Final = 0.3
"""Between two looks at a log that somebody follows."""
_FOLLOWED_S_MAX: Final = 3600.0
_QUIET_LOOKS: Final = 50
"""After so many looks without a line a comment tells whether the reader is still there."""
_LINES: Final = 200
_LINES_MAX: Final = 1000
_FLAGS: Final = frozenset(("force", "keep_waiting"))
_YES: Final = frozenset(("", "1", "true", "yes"))
_NO: Final = frozenset(("0", "false", "no"))


class ModelsHttp:
    """`GET /models`, `/models/M` and `/models/M/logs`; `POST /models/M/load`, `unload`, `pin` and `unpin`."""

    def __init__(self, service: SchedulerService) -> None:
        self._service = service

    def routes(self) -> list[BaseRoute]:
        """Return the routes. A model's name may hold slashes, so what follows it is looked at first."""
        return [
            Route("/models", self._list, methods=["GET"]),
            Route("/models/{name:path}/logs", self._logs, methods=["GET"]),
            Route("/models/{name:path}/load", self._load, methods=["POST"]),
            Route("/models/{name:path}/unload", self._unload, methods=["POST"]),
            Route("/models/{name:path}/pin", self._pin, methods=["POST"]),
            Route("/models/{name:path}/unpin", self._unpin, methods=["POST"]),
            Route("/models/{name:path}", self._show, methods=["GET"]),
        ]

    async def _list(self, _: Request) -> Response:
        state, now = self._service.state, self._service.now()
        return _json(
            {
                "models": [model_json(model) for model in view_models(state, now)],
                "devices": [device_json(device) for device in view_devices(state)],
            }
        )

    async def _show(self, request: Request) -> Response:
        return self._about(request, lambda _: None)

    async def _load(self, request: Request) -> Response:
        return self._about(request, lambda name: self._service.launchers.asked(LoadAsked(model=name)))

    async def _unload(self, request: Request) -> Response:
        odd = [name for name, value in request.query_params.items() if name not in _FLAGS or _flag(value) is None]
        if odd:
            message = f"'{odd[0][:NAME_SHOWN_MAX]}' is no flag of an unload, or neither true nor false: there are force"
            return refusal(Failure(code=FailureCode.BAD_REQUEST, message=f"{message} and keep_waiting"))
        firmly = _is_set(request, "force")
        keep_waiting = _is_set(request, "keep_waiting")
        return self._about(
            request,
            lambda name: self._service.launchers.asked(
                UnloadAsked(model=name, firmly=firmly, keep_waiting=keep_waiting)
            ),
        )

    async def _pin(self, request: Request) -> Response:
        return self._about(request, lambda name: self._service.launchers.asked(PinAsked(model=name, on=True)))

    async def _unpin(self, request: Request) -> Response:
        return self._about(request, lambda name: self._service.launchers.asked(PinAsked(model=name, on=False)))

    async def _logs(self, request: Request) -> Response:
        found = self._find(request)
        if found is None:
            return self._unknown(request)
        whole = await self._service.launchers.log(found.launcher, found.name, 0)
        wanted = request.query_params.get("lines", str(_LINES))
        count = min(int(wanted), _LINES_MAX) if wanted.isdecimal() and len(wanted) < len(str(10**9)) else _LINES
        lines = whole.lines[len(whole.lines) - min(count, len(whole.lines)) :]
        if not _is_set(request, "follow"):
            return _json({"model": found.name, "lines": list(lines), "next": whole.next})
        stream = self._followed(found.launcher, found.name, lines, whole.next)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"cache-control": "no-store"})

    async def _followed(
        self, launcher: LauncherId, name: ModelName, lines: tuple[str, ...], after: int
    ) -> AsyncIterator[bytes]:
        """Yield a log's lines as events, for an hour at most."""
        quiet = 0
        for _ in range(int(_FOLLOWED_S_MAX / _LOOK_S)):
            for line in lines:
                yield b"data: " + msgspec.json.encode({"line": line}) + b"\n\n"
            quiet = 0 if lines else quiet + 1
            if quiet == _QUIET_LOOKS:
                quiet = 0
                yield b": still here\n\n"
            await asyncio.sleep(_LOOK_S)
            found = await self._service.launchers.log(launcher, name, after)
            lines, after = found.lines, found.next

    def _about(self, request: Request, wish: Callable[[ModelName], None]) -> Response:
        """Have a wish taken in, and answer with the model as it is then."""
        found = self._find(request)
        if found is None:
            return self._unknown(request)
        wish(found.name)
        after = self._find(request)
        return _json(model_json(after or found))

    def _find(self, request: Request) -> ModelView | None:
        state = self._service.state
        asked = ModelName(request.path_params["name"])
        name = own_name(offered(state.serving, state.residency), state.residency, asked)
        if name not in state.residency.models:
            return None
        return next(model for model in view_models(state, self._service.now()) if model.name == name)

    def _unknown(self, request: Request) -> Response:
        asked: str = request.path_params["name"]
        message = no_such_model("launcher", asked[:NAME_SHOWN_MAX], self._service.state.residency.models)
        return refusal(Failure(code=FailureCode.UNKNOWN_MODEL, message=message))


def _is_set(request: Request, name: str) -> bool:
    """Whether a query parameter is there and says yes: `?force`, `?force=1`, `?force=true`."""
    return bool(_flag(request.query_params.get(name, "no")))


def _flag(value: str) -> bool | None:
    """Return what a flag says; None where that is neither yes nor no."""
    said = value.lower()
    return said in _YES if said in _YES or said in _NO else None


def _json(body: Json) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json", headers={"cache-control": "no-store"})
