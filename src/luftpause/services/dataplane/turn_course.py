"""One turn from admission to its end: held, placed, sent to its engine, streamed back.

From before the admission on, a client that leaves cancels its turn. Whatever happens, the turn ends exactly once and
the engine's connection is closed or given back. An end is reported before the client can see it, since the next turn
of its run may follow at once.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from luftpause.core.dialects.failures import Failure, FailureCode, refused
from luftpause.core.dialects.observe import BodyObserver, Observer, StreamObserver
from luftpause.core.model.ids import ReplicaId, RunId, TurnId
from luftpause.core.model.replicas import Placement
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import FirstTokenSeen, TurnAbandoned, TurnFailed, TurnFinished, TurnStarted
from luftpause.ports.asgi import Line, Send
from luftpause.ports.engines import (
    EngineBrokeError,
    EngineRequest,
    Engines,
    EngineUnreachableError,
    Exchange,
    Header,
)
from luftpause.ports.scheduler import LinkFaultError, LinkRefusedError, SchedulerLink, TurnRefusedError
from luftpause.services.dataplane.answers import send_failure
from luftpause.services.dataplane.headers import for_client, fresh_run
from luftpause.services.dataplane.metrics import GONE, DataplaneMetrics
from luftpause.services.dataplane.open_turns import OpenTurns

_BUSY: Final = (429, 503)
_DIGITS_MAX: Final = 10

_LOGGER: Final = logging.getLogger("luftpause.dataplane")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every turn of a dataplane shares."""

    link: SchedulerLink
    engines: Engines
    turns: OpenTurns
    metrics: DataplaneMetrics


class ClientCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the application by its server."""

    line: Line
    headers: Sequence[Header]
    send: Send


class TurnCourse:
    """Takes one turn through. `run` is the client's, None when it names none; the scheduler has the last word."""

    __slots__ = (
        "_around",
        "_call",
        "_client_left",
        "_counts",
        "_exchange",
        "_offer",
        "_over",
        "_request",
        "_run",
        "_since",
    )

    def __init__(
        self, around: Surroundings, call: ClientCall, *, run: RunId | None, offer: TurnOffer, request: EngineRequest
    ) -> None:
        self._around = around
        self._call = call
        self._run = run
        self._offer = offer
        self._counts = around.metrics.of(offer.service_class)
        self._request: EngineRequest | None = request
        self._exchange: Exchange | None = None
        self._client_left = False
        self._over = False
        self._since = time.monotonic()

    async def take(self) -> None:
        """Take the turn to its end."""
        turn = self._offer.turn
        line = self._call.line
        line.on_leave(self._leave)
        ending: TurnFailed | TurnAbandoned = TurnFailed(turn=turn, cause="the dataplane failed")
        try:
            placement = await self._place()
            if placement is not None:
                await self._forward(placement)
        except asyncio.CancelledError:
            if not self._client_left:
                ending = TurnFailed(turn=turn, cause="the dataplane shut down")
                raise
            ending = TurnAbandoned(turn=turn)
            self._count(GONE)
            _running().uncancel()
        finally:
            self._over = True
            line.on_leave(None)
            if self._exchange is not None:
                self._exchange.close()
            self._around.turns.end(turn, ending)

    def _leave(self, task: asyncio.Task[None]) -> None:
        """Cancel the turn: its client left."""
        if not self._over:
            self._client_left = True
            task.cancel()

    async def _place(self) -> Placement | None:
        """Return where the turn runs, None when it was refused and the client was told."""
        try:
            ticket = await self._around.link.admit(self._offer)
            self._run = ticket.run
            placement = await ticket.placement
        except TurnRefusedError as error:
            self._around.turns.end(self._offer.turn, None)
            await self._fail(refused(error.refusal))
            return None
        except (LinkRefusedError, LinkFaultError) as error:
            await self._scheduler_failed(str(error))
            return None
        except asyncio.CancelledError:
            if _running().cancelling():
                raise
            await self._scheduler_failed("the scheduler dropped the turn")  # the placement was cancelled, not we
            return None
        held_s = time.monotonic() - self._since
        self._counts.held.add(held_s)
        return placement

    async def _forward(self, placement: Placement) -> None:
        turn = self._offer.turn
        turns = self._around.turns
        turns.tell(TurnStarted(turn=turn))
        assert self._request is not None, "a turn is forwarded once"
        try:
            exchange = self._exchange = await self._around.engines.send(placement.endpoint, self._request)
        except (EngineUnreachableError, EngineBrokeError) as error:
            cause = self._engine_failed(placement.replica, error)
            await self._fail(Failure(code=FailureCode.ENGINE_FAILED, message=cause))
            return
        self._request = None  # a long stream need not hold a long prompt
        self._count(str(exchange.status))
        send = self._call.send
        headers = for_client(exchange.headers, self._run or fresh_run())
        await send({"type": "http.response.start", "status": exchange.status, "headers": headers})
        observer = _observer(exchange)
        try:
            last = await self._stream(exchange, observer, placement)
        except EngineBrokeError as error:
            self._engine_failed(placement.replica, error)
            self._call.line.cut()
            return
        if observer is None or not observer.done:
            turns.end(turn, _ending(turn, placement, exchange, observer))
        self._over = True
        await send({"type": "http.response.body", "body": last, "more_body": False})

    async def _stream(self, exchange: Exchange, observer: Observer | None, placement: Placement) -> bytes:
        """Send every piece on as it comes, and look at it in passing. Return what is to be sent with the end."""
        send = self._call.send
        while data := await exchange.read():
            if observer is not None:
                if not observer.first_token_seen and exchange.status == 200:
                    self._first_byte()
                done = observer.done
                observer.feed(data)
                if observer.done and not done:
                    turn = self._offer.turn
                    self._around.turns.end(turn, _ending(turn, placement, exchange, observer))
            if exchange.over:
                break
            await send({"type": "http.response.body", "body": data, "more_body": True})
        return data

    def _first_byte(self) -> None:
        seconds = time.monotonic() - self._since
        self._counts.first_byte.add(seconds)
        self._around.turns.tell(FirstTokenSeen(turn=self._offer.turn))

    def _engine_failed(self, replica: ReplicaId, error: Exception) -> str:
        """End the turn as failed by its engine; return why."""
        cause = f"engine {replica}: {error}"
        turn = self._offer.turn
        _LOGGER.warning("turn_failed", extra={"turn": turn, "run": self._run, "cause": cause})
        self._around.turns.end(turn, TurnFailed(turn=turn, cause=cause))
        return cause

    async def _scheduler_failed(self, cause: str) -> None:
        turn = self._offer.turn
        _LOGGER.warning("turn_failed", extra={"turn": turn, "run": self._run, "cause": cause})
        self._around.turns.end(turn, TurnFailed(turn=turn, cause=cause))
        await self._fail(Failure(code=FailureCode.SCHEDULER_FAULT, message=cause))

    async def _fail(self, failure: Failure) -> None:
        self._count(str(failure.status))
        await send_failure(self._call.send, self._run or fresh_run(), failure)

    def _count(self, status: str) -> None:
        self._counts.answered(status)


def _running() -> asyncio.Task[None]:
    task: asyncio.Task[None] | None = asyncio.current_task()
    assert task is not None, "an ASGI application runs in a task"
    return task


def _observer(exchange: Exchange) -> Observer | None:
    """Return what looks at the answer; nothing looks at one that is a failure."""
    if not 200 <= exchange.status < 300:
        return None
    for name, value in exchange.headers:
        if name == b"content-type" and value[:17].lower() == b"text/event-stream":
            return StreamObserver()
    return BodyObserver()


def _retry_after_s(exchange: Exchange) -> float | None:
    """Return how long the engine wants to be left alone, as a number of seconds; a date is not worth reading here."""
    if exchange.status in _BUSY:
        for name, value in exchange.headers:
            if name == b"retry-after" and value.isdigit() and len(value) < _DIGITS_MAX:
                return float(value)
    return None


def _ending(
    turn: TurnId, placement: Placement, exchange: Exchange, observer: Observer | None
) -> TurnFinished | TurnFailed:
    """Return how a turn ended whose engine answered whole."""
    if observer is None:
        cause = f"engine {placement.replica}: status {exchange.status}"
        return TurnFailed(turn=turn, cause=cause, retry_after_s=_retry_after_s(exchange))
    seen = observer.observed()
    if seen.error and not seen.finish:
        return TurnFailed(turn=turn, cause=f"engine {placement.replica}: {seen.error}")
    return TurnFinished(turn=turn, finish=seen.finish, usage=seen.usage, tool_calls=seen.tool_calls, tools=seen.tools)
