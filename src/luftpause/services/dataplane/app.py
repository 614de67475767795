"""The LLM door as an ASGI application; chats need the `Line` that our own server offers.

It routes, answers the small routes itself and gives chats to `chat`. It knows the scheduler and the engines only by
their ports, and nothing of sockets, tokens or hosts: its server and `DoorGuard` do.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Container, Sequence
from typing import Final

from luftpause.core.dialects import openai_models
from luftpause.core.dialects.anthropic_messages import models as anthropic_models
from luftpause.core.dialects.dialect import Dialect
from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.dialects.gemini import models as gemini_models
from luftpause.core.model.ids import ModelName, PeerId, PrincipalId, RunId
from luftpause.core.model.refusals import no_such_model
from luftpause.ports.asgi import LINE_EXTENSION, Line, Receive, Scope, Send, headers_of, kept_of, principal_of
from luftpause.ports.crew import Crew, CrewAwayError
from luftpause.ports.engines import Engines
from luftpause.ports.scheduler import LinkFaultError, LinkRefusedError, SchedulerLink
from luftpause.ports.tracing import Tracer
from luftpause.services.dataplane.answers import send_body, send_failure, send_nothing
from luftpause.services.dataplane.counts import DoorCounts
from luftpause.services.dataplane.headers import RUN_HEADER, RUN_ID_MAX, is_run_id, query_for_engine, run_to_echo
from luftpause.services.dataplane.keepalive import Keepalives
from luftpause.services.dataplane.metrics import DataplaneMetrics
from luftpause.services.dataplane.open_turns import OpenTurns
from luftpause.services.dataplane.routes import dialect_at, dialect_for
from luftpause.services.dataplane.settings import DataplaneSettings
from luftpause.services.dataplane.spoken import Spoken
from luftpause.services.dataplane.surroundings import ClientCall, Surroundings
from luftpause.services.dataplane.turn_request import Target, serve_turn
from luftpause.services.dataplane.turn_spans import TurnSpans
from luftpause.services.dataplane.ways_out import GEMINI_MODELS, MODELS, meant, way_out
from luftpause.telemetry.borrowed import dropped_spans
from luftpause.telemetry.exposition import counts_of, rendered

RUNS: Final = "/v1/runs/"
_OPENAI: Final = "/openai"
_OPENAI_BELOW: Final = b"/openai/v1/"
"""Clients of Groq's add this to any base URL by themselves; Azure has its routes there, too."""
_SHAPES: Final = {"messages": anthropic_models, "gemini": gemini_models}
"""How models are told of, by dialect; all others as OpenAI tells of them."""
_HEALTHY: Final = b'{"status":"ok"}'
_HELLO: Final = b'{"service":"luftpause dataplane"}'
PATH_SHOWN_MAX: Final = 100
_SCHEDULER_AWAY: Final = Failure(
    code=FailureCode.SCHEDULER_AWAY, message="the scheduler is out of reach, try again in a moment"
)
_LOGGER: Final = logging.getLogger("luftpause.dataplane")

Answer = Callable[[Send, RunId], Awaitable[None]]


class Dataplane:
    """The LLM door.

    Args:
        link: the scheduler.
        engines: how turns reach their engines.
        settings: limits and periods.
        peer: this instance's name in turn ids; None mints one.
        crew: the processes that serve this door together; None when this is all of it.
        tracer: where each turn's span goes; None: nobody traces.
    """

    runs_eagerly = True
    """See `ports.asgi.runs_eagerly`."""

    def __init__(
        self,
        link: SchedulerLink,
        engines: Engines,
        settings: DataplaneSettings,
        *,
        peer: PeerId | None = None,
        crew: Crew | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        if tracer is not None:
            link = TurnSpans(link, tracer)
        self._link = link
        self._crew = crew
        self._settings = settings
        self._turns = OpenTurns(link, peer=peer or PeerId(f"dp_{secrets.token_urlsafe(9)}"))
        self._counts = DoorCounts()
        more = () if tracer is None else (dropped_spans(lambda: tracer.dropped),)
        self._metrics = DataplaneMetrics(self._counts, lambda: len(self._turns), more)
        self._spoken = Spoken(engines)
        if crew is not None:
            crew.shows(lambda: counts_of(self._metrics))
        self._around = Surroundings(
            link=link,
            engines=engines,
            turns=self._turns,
            counts=self._counts,
            settings=settings,
            spoken=self._spoken,
            keepalives=Keepalives(after_s=settings.keepalive_after_s, period_s=settings.keepalive_s),
            traces=tracer is not None,
        )
        self._renewal: asyncio.Task[None] | None = None
        self._answers: dict[str, Answer] = {
            "/": self._hello,
            "/api/hello": self._hello,
            "/health": self._health,
            "/metrics": self._show_metrics,
        }

    @property
    def peer(self) -> PeerId:
        """This instance's name."""
        return self._turns.peer

    @property
    def metrics(self) -> DataplaneMetrics:
        """What was counted here so far."""
        return self._metrics

    @property
    def open_turns(self) -> OpenTurns:
        """The turns that are held or run now."""
        return self._turns

    async def start(self) -> None:
        """Begin to renew open turns."""
        self._renewal = asyncio.create_task(self._turns.renew(self._settings.renew_period_s))

    async def close(self) -> None:
        """Stop renewing, and asking engines. Close the server first: it lets open turns end."""
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)
            self._renewal = None
        await self._spoken.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope; only HTTP is spoken."""
        if scope["type"] != "http":
            raise ValueError(f"the dataplane does not serve {scope['type']} scopes")
        headers = headers_of(scope)
        path, named, line = scope["path"], headers.get(RUN_HEADER, b""), _line(scope)
        try:
            answering = self._answering(scope, headers, line, receive, send)
            del headers
            await answering
        except Exception:
            _LOGGER.exception("request_failed", extra={"path": path[:200]})
            await _break_off(path, named, line, send)

    def _answering(
        self, scope: Scope, headers: dict[bytes, bytes], line: Line, receive: Receive, send: Send
    ) -> Awaitable[None]:
        """Return what answers a request."""
        dialect = dialect_for(scope["path"], scope["query_string"], headers)
        if dialect is None or scope["method"] != "POST":
            if scope["raw_path"].startswith(_OPENAI_BELOW):
                return self(_above(scope), receive, send)
            return self._route(scope, headers, send)
        call = ClientCall(
            line=line, headers=scope["headers"], send=send, principal=principal_of(scope), kept=kept_of(scope)
        )
        target = _target(dialect, scope)
        scope.clear()  # a long stream need not hold what asked for it
        return serve_turn(self._around, target, call, headers)

    async def _route(self, scope: Scope, headers: dict[bytes, bytes], send: Send) -> None:
        """Answer everything but chats."""
        path, method = scope["path"], scope["method"]
        run = run_to_echo(headers)
        answer = self._answers.get(path)
        is_turn = dialect_for(path) is not None
        listing, model = _model_at(path)
        is_model = bool(listing) and not is_turn
        if answer is not None and method in ("GET", "HEAD"):
            await answer(send, run)
        elif is_model and method in ("GET", "HEAD"):
            await self._models(send, run, dialect_at(path, headers), model)
        elif is_turn and b"sec-websocket-key" in headers:
            await _refuse_websocket(send, run, path)
        elif path.startswith(RUNS) and method == "DELETE":
            await self._end_run(send, run, path.removeprefix(RUNS), principal_of(scope).name)
        else:
            is_told = answer is not None or (is_model and ":" not in (model or ""))  # M:VERB is no model
            allowed = b"GET, HEAD" if is_told else b"POST" if is_turn else b"DELETE"
            known = is_told or is_turn or path.startswith(RUNS)
            await _refuse_route(send, run, path, method, allowed if known else b"", headers)

    async def _hello(self, send: Send, run: RunId) -> None:
        await send_body(send, run, _HELLO)

    async def _health(self, send: Send, run: RunId) -> None:
        await send_body(send, run, _HEALTHY)

    async def _show_metrics(self, send: Send, run: RunId) -> None:
        try:
            counts = counts_of(self._metrics) if self._crew is None else await self._crew.counts()
        except CrewAwayError as error:
            await send_failure(send, run, Failure(code=FailureCode.INTERNAL, message=str(error)))
        else:
            await send_body(send, run, rendered(counts), content_type=self._metrics.content_type)

    async def _models(self, send: Send, run: RunId, dialect: Dialect, named: str | None) -> None:
        """Tell of all models, or of one that is named, in the shape that its client knows."""
        shape = _SHAPES.get(dialect.name, openai_models)
        models = await self._served(send, run, dialect)
        if models is None:
            return
        if named is None:
            await send_body(send, run, shape.listed(models))
        elif named in models:
            await send_body(send, run, shape.described(named))
        else:
            message = no_such_model("replica", named[:PATH_SHOWN_MAX], models)
            await send_failure(send, run, Failure(code=FailureCode.UNKNOWN_MODEL, message=message), dialect=dialect)

    async def _served(self, send: Send, run: RunId, dialect: Dialect) -> Sequence[ModelName] | None:
        """Return the models that are served, None when the scheduler did not say and the client was told."""
        try:
            async with asyncio.timeout(self._settings.link_timeout_s):
                return await self._link.models()
        except TimeoutError:
            await send_failure(send, run, _SCHEDULER_AWAY, dialect=dialect)
        except (LinkRefusedError, LinkFaultError) as error:
            failure = Failure(code=FailureCode.SCHEDULER_FAULT, message=str(error))
            await send_failure(send, run, failure, dialect=dialect)
        return None

    async def _end_run(self, send: Send, run: RunId, named: str, principal: PrincipalId) -> None:
        failure = Failure(code=FailureCode.UNKNOWN_RUN, message=f"there is no run {named[:RUN_ID_MAX]!r}")
        if not is_run_id(named):
            await send_failure(send, run, failure)
            return
        run = RunId(named)
        try:
            async with asyncio.timeout(self._settings.link_timeout_s):
                ended = await self._link.end_run(principal, run)
        except TimeoutError:
            await send_failure(send, run, _SCHEDULER_AWAY)
            return
        except (LinkRefusedError, LinkFaultError) as error:
            await send_failure(send, run, Failure(code=FailureCode.SCHEDULER_FAULT, message=str(error)))
            return
        if ended:
            await send_nothing(send, run)
        else:
            await send_failure(send, run, failure)


def _model_at(path: str) -> tuple[str, str | None]:
    """Return the listing of models that a path belongs to, empty without one; and the model that it names, if any."""
    for listing in (MODELS, GEMINI_MODELS):
        if path == listing:
            return listing, None
        if path.startswith(f"{listing}/") and path != f"{listing}/":
            return listing, path[len(listing) + 1 :]
    return "", None


def _above(scope: Scope) -> Scope:
    """Return a request for what is below `/openai/v1` as one for what is below `/v1`."""
    above = len(_OPENAI)
    return {**scope, "path": scope["path"][above:], "raw_path": scope["raw_path"][above:]}


def _target(dialect: Dialect, scope: Scope) -> Target:
    return Target(
        dialect=dialect,
        path=scope["path"],
        raw_path=scope["raw_path"],
        query=query_for_engine(scope["query_string"]),
    )


async def _break_off(path: str, named: bytes, line: Line, send: Send) -> None:
    """Tell the client of a fault of ours, or cut the answer when it has begun. `named`: the run, as it was named."""
    failure = Failure(code=FailureCode.INTERNAL, message="the dataplane failed, see its log")
    try:
        await send_failure(send, run_to_echo({RUN_HEADER: named}), failure, dialect=dialect_at(path))
    except RuntimeError:  # by ASGI's rules: an answer begins once
        line.cut()


def _line(scope: Scope) -> Line:
    """Return what our own server offers beyond ASGI."""
    line: Line = scope["extensions"][LINE_EXTENSION]["line"]
    return line


async def _refuse_websocket(send: Send, run: RunId, path: str) -> None:
    """Refuse to speak WebSocket. Codex takes a 426, and no other status, as its sign to go on over HTTP at once."""
    message = (
        f"{path[:PATH_SHOWN_MAX]!r} is not spoken over WebSocket here: post to it (Codex does so by itself; "
        "`supports_websockets = false` in its model provider spares the attempt)"
    )
    failure = Failure(code=FailureCode.NO_WEBSOCKET, message=message)
    more = ((b"upgrade", b"HTTP/1.1"), (b"connection", b"upgrade"))
    await send_failure(send, run, failure, dialect=dialect_at(path), more=more)


async def _refuse_route(
    send: Send, run: RunId, path: str, method: str, allowed: bytes, headers: Container[bytes]
) -> None:
    """Answer 405 where the path is known, else 404."""
    shown = path[:PATH_SHOWN_MAX]
    if allowed:
        message = f"{method} is not allowed on {shown!r}, only {allowed.decode()}"
        failure = Failure(code=FailureCode.METHOD_NOT_ALLOWED, message=message)
        await send_failure(send, run, failure, dialect=dialect_at(path, headers), more=((b"allow", allowed),))
        return
    failure = Failure(code=FailureCode.NOT_FOUND, message=f"there is no route {shown!r} here: {way_out(path)}")
    await send_failure(send, run, failure, dialect=dialect_at(meant(path), headers))
