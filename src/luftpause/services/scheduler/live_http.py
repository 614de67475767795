"""What the page and programs that look on ask for: the stream of what changes, the timeline, and a person's decision.

A stream never waits for a reader, and a decision goes to the runtime that asked for it, nowhere else.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Message, Receive, Scope, Send

from luftpause import __version__
from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.model.ids import Instant
from luftpause.ports.asgi import LINE_EXTENSION, Line
from luftpause.ports.json_bodies import NotJsonError, read_json
from luftpause.ports.run_trees import NotDecidedError, RuntimeAwayError, RunTree, RunTrees
from luftpause.ports.scheduler import PeerSeen
from luftpause.services.scheduler.family_rows import FamilyRows
from luftpause.services.scheduler.feed import READERS_MAX, Feed
from luftpause.services.scheduler.models_json import Json
from luftpause.services.scheduler.pace import Pace
from luftpause.services.scheduler.refusals import refusal
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.scheduler.status_json import Seen
from luftpause.services.scheduler.timeline import AGE_S, CHANGES_MAX, Timeline
from luftpause.services.scheduler.timeline_json import change_row, from_the_start, lane_row, lanes_of

URL_SHOWN_MAX: Final = 100
STALLED_S: Final = 30.0
_NO_DECISION: Final = {
    400: FailureCode.BAD_REQUEST,
    413: FailureCode.BODY_TOO_LARGE,
    415: FailureCode.UNSUPPORTED_MEDIA_TYPE,
}

_log = logging.getLogger("luftpause.scheduler")


class _Answer(msgspec.Struct, frozen=True):
    """A person's decision on a tool call that waits. `runtime` may be left out where only one is known."""

    handle: str
    call: str
    allow: bool
    runtime: str = ""


class _NoRunTrees:
    """Knows no runtime."""

    known: Sequence[str] = ()

    async def look(self, runtime: str) -> RunTree:
        """See `RunTrees`."""
        raise RuntimeAwayError(f"{runtime} is not known here")

    async def decide(self, runtime: str, handle: str, call: str, *, allow: bool) -> bool:
        """See `RunTrees`."""
        raise RuntimeAwayError(f"{runtime} is not known here")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is around a scheduler.

    Attributes:
        peers: returns who holds it over the link.
        trees: the runtimes that may be asked for.
        llm_door: returns the LLM door's base URL for newcomers, empty where that is not known.
    """

    peers: Callable[[], Sequence[PeerSeen]] = tuple
    trees: RunTrees = field(default_factory=_NoRunTrees)
    llm_door: Callable[[], str] = str


class LiveHttp:
    """`GET /events`, `GET /timeline` and `POST /approvals`.

    Args:
        service: watched from now on.
        around: what else there is.
    """

    def __init__(self, service: SchedulerService, around: Surroundings) -> None:
        self._service = service
        self._around = around
        self._trees = around.trees
        self._pace = Pace()
        self._timeline = Timeline()
        self._families = FamilyRows(self._timeline)
        service.watch(self._pace)
        service.watch(self._timeline)
        self.feed = Feed(self.look, self._about_doors, self._timeline, self._trees, self._started)

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        return [
            Route("/events", self._events, methods=["GET"]),
            Route("/timeline", self._get_timeline, methods=["GET"]),
            Route("/approvals", self._decide, methods=["POST"]),
        ]

    def close(self) -> None:
        """End all streams."""
        self.feed.close()

    def look(self) -> Seen:
        """Return the moment."""
        service = self._service
        return Seen(
            state=service.state,
            now=service.now(),
            peers=self._around.peers(),
            pace=self._pace,
            families=self._families,
        )

    def about(self) -> Json:
        """Return what is said of the scheduler itself."""
        service = self._service
        return {
            "version": __version__,
            "policy": service.settings.policy,
            "uptime_s": round(service.uptime_s, 3),
        }

    def _about_doors(self) -> Json:
        doors = {"llm": self._around.llm_door(), "mcp": list(self._trees.known)}
        return {**self.about(), "doors": doors}

    def _started(self) -> Instant:
        return Instant(self._service.now() - self._service.uptime_s)

    async def _events(self, request: Request) -> Response:
        try:
            runtime = self._runtime(request.query_params.get("runtime", ""))
            if self.feed.is_closed:
                raise _RefusedError(FailureCode.SHUTTING_DOWN, "the scheduler is shutting down", retry_after_s=1.0)
            wait_s = self.feed.room_in_s()
            if wait_s:
                message = f"{READERS_MAX} pages are open, as many as may be; close one, or ask again in {wait_s:.0f} s"
                raise _RefusedError(FailureCode.TOO_MANY_READERS, message, retry_after_s=wait_s)
        except _RefusedError as refused:
            return refused.response
        return _Events(self.feed.stream(runtime))

    async def _get_timeline(self, _: Request) -> Response:
        started, now = self._started(), self._service.now()
        changes = from_the_start(self._timeline, now, AGE_S, CHANGES_MAX)

        def told() -> Response:
            lanes = [lane_row(lane) for lane in lanes_of(changes)]
            rows = [change_row(change, started) for change in changes]
            return _json({"now_ms": round((now - started) * 1000), "lanes": lanes, "changes": rows})

        return await asyncio.to_thread(told)

    async def _decide(self, request: Request) -> Response:
        try:
            asked = await read_json(request, _Answer, "decision")
            runtime = self._runtime(asked.runtime)
            if runtime is None:
                raise _RefusedError(FailureCode.NOT_FOUND, "no runtime is known here, so nothing waits to be decided")
            decided = await self._trees.decide(runtime, asked.handle, asked.call, allow=asked.allow)
        except NotJsonError as error:
            return _RefusedError(_NO_DECISION[error.status], str(error)).response
        except _RefusedError as refused:
            return refused.response
        except NotDecidedError as error:
            return _RefusedError(FailureCode.BAD_REQUEST, f"the runtime did not take it: {error}").response
        except RuntimeAwayError as error:
            return _RefusedError(FailureCode.ENGINE_FAILED, f"the runtime does not answer: {error}").response
        return _json({"decided": decided})

    def _runtime(self, asked: str) -> str | None:
        """Return the runtime that is asked for; the first one that is known where none is named.

        Raises:
            _RefusedError: it is not known here.
        """
        known = self._trees.known
        if not asked:
            return known[0] if known else None
        url = asked.rstrip("/")
        if url not in known:
            shown, there = asked[:URL_SHOWN_MAX], ", ".join(known) or "none"
            raise _RefusedError(FailureCode.NOT_FOUND, f"{shown!r} is no runtime known here; known: {there}")
        return url


class _Events(StreamingResponse):
    """A stream that is cut when its reader has taken nothing for STALLED_S: it would keep a seat from others."""

    def __init__(self, stream: AsyncGenerator[bytes, None]) -> None:
        super().__init__(stream, media_type="text/event-stream", headers={"cache-control": "no-store"})
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""

        async def taken(message: Message) -> None:
            async with asyncio.timeout(STALLED_S):
                await send(message)

        try:
            await super().__call__(scope, receive, taken)
        except TimeoutError:
            _log.info("page_cut", extra={"why": f"it took nothing for {STALLED_S:g} s"})
            line: Line = scope["extensions"][LINE_EXTENSION]["line"]
            line.cut()
        finally:
            await self._stream.aclose()


class _RefusedError(Exception):
    """What was asked for cannot be had."""

    def __init__(self, code: FailureCode, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self._failure = Failure(code=code, message=message, retry_after_s=retry_after_s)

    @property
    def response(self) -> Response:
        """What whoever asked is answered."""
        return refusal(self._failure)


def _json(body: Json) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json", headers={"cache-control": "no-store"})
