"""The turns port over the LLM door.

A 429 is waited out, as often as it takes: whoever says so is alive. When nobody is there (no connection, a 502, 503 or
504) the turn waits for somebody to come back until the turn timeout has passed since the last sign of life. A reply
that is broken (its stream breaks off or is empty, or a 500: llama.cpp answers so now and then when a reply broke its
tool-call grammar) is asked for again a few times. An engine that refuses the answer's shape is asked without it, for
whoever wants the answer checks it anyway. Anything else is final.
"""

import asyncio
import logging
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from luftpause.adapters.turns_http.reply import BrokenReplyError, EmptyReplyError, ReplyAssembler, error_text
from luftpause.adapters.turns_http.request import authorization, build
from luftpause.adapters.turns_http.retry import Patience, retry_after_s
from luftpause.adapters.turns_http.sse import EventReader, EventTooLongError, WholeReader
from luftpause.core.model.ids import PrincipalId, RunId
from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineBrokeError, EngineRequest, Engines, EngineUnreachableError, Exchange
from luftpause.ports.turns import TurnFailedError, TurnReply, TurnRequest

_ERROR_BODY_MAX: Final = 64 * 1024
_END_RUN_TIMEOUT_S: Final = 10.0
_EMPTY_REPLIES_MAX: Final = 2
_RUN_ID_MAX: Final = 128
_NOBODY_THERE: Final = (502, 503, 504)
_NOT_UNDERSTOOD: Final = (400, 422)
_draw: Final = random.SystemRandom().random
logger = logging.getLogger("luftpause.turns")


class _TryFailedError(Exception):
    """This try failed; another may not."""


class _NobodyThereError(Exception):
    """The engine, or the door itself, is away for now."""


class _RefusedError(TurnFailedError):
    """Asking again for the same is in vain."""

    def __init__(self, status: int, told: str) -> None:
        super().__init__(f"the turn was refused with {told}")
        self.status = status


class _RateLimitedError(Exception):
    def __init__(self, pause_s: float) -> None:
        super().__init__(f"rate limited for {pause_s} s")
        self.pause_s = pause_s


class HttpTurns:
    """Takes turns at `endpoint`, the dataplane's base URL, presenting the token of the run's principal, if any."""

    def __init__(
        self,
        engines: Engines,
        endpoint: Endpoint,
        tokens: Mapping[PrincipalId, str] | None = None,
        *,
        patience: Patience | None = None,
    ) -> None:
        self._engines = engines
        self._endpoint = endpoint
        self._tokens = tokens or {}
        self._patience = patience or Patience()

    async def take(self, request: TurnRequest) -> TurnReply:
        """Take a turn; see the port."""
        course = _Course(run=request.run, alive_at=asyncio.get_running_loop().time())
        wire = build(request, self._token_of(request.principal))
        while True:
            try:
                return await self._try(wire, course, may_call=bool(request.tools))
            except _RateLimitedError as limit:
                logger.info("turn_rate_limited", extra={"run": request.run, "pause_s": limit.pause_s})
                await asyncio.sleep(limit.pause_s)
                course.show_life()
            except _RefusedError as refusal:
                if request.answer_schema is None or request.tools or refusal.status not in _NOT_UNDERSTOOD:
                    raise
                logger.info("turn_without_shape", extra={"run": request.run, "cause": str(refusal)})
                request = replace(request, answer_schema=None)
                wire = build(request, self._token_of(request.principal))
            except EmptyReplyError as error:
                await self._pause_after_failure(course, str(error), tries=_EMPTY_REPLIES_MAX)
            except (_TryFailedError, BrokenReplyError, EventTooLongError, EngineBrokeError) as error:
                await self._pause_after_failure(course, str(error))
            except TimeoutError:
                await self._pause_after_failure(course, f"no sign of life for {self._patience.turn_timeout_s:g} s")
            except EngineUnreachableError as error:
                await self._pause_while_away(course, f"the LLM door cannot be reached: {error}")
            except _NobodyThereError as error:
                await self._pause_while_away(course, str(error))

    async def end_run(self, principal: PrincipalId, run: RunId) -> None:
        """Let the scheduler forget the run; see the port."""
        wire = EngineRequest(
            method=b"DELETE",
            path=b"/v1/runs/" + run.encode(),
            headers=authorization(self._token_of(principal)),
            body=b"",
        )
        try:
            async with asyncio.timeout(_END_RUN_TIMEOUT_S):
                exchange = await self._engines.send(self._endpoint, wire)
                try:
                    await _read_some(exchange)
                finally:
                    exchange.close()
        except (EngineUnreachableError, EngineBrokeError, TimeoutError) as error:
            logger.warning("run_end_not_reported", extra={"run": run, "error": str(error)})
            return
        # 404: the scheduler never heard of it or forgot it already, which is what was wanted.
        if exchange.status >= 400 and exchange.status != 404:
            logger.warning("run_end_not_reported", extra={"run": run, "error": f"status {exchange.status}"})

    def _token_of(self, principal: PrincipalId) -> str:
        return self._tokens.get(principal, "")

    async def _pause_after_failure(self, course: "_Course", cause: str, tries: int | None = None) -> None:
        """Wait before another try, and count.

        Raises:
            TurnFailedError: there have been enough.
        """
        course.failures += 1
        logger.info("turn_try_failed", extra={"run": course.run, "failures": course.failures, "cause": cause})
        if course.failures >= (self._patience.tries if tries is None else tries):
            raise TurnFailedError(f"the turn failed {course.failures} times, at last: {cause}")
        await asyncio.sleep(self._patience.pause_after(course.failures, _draw()))

    async def _pause_while_away(self, course: "_Course", cause: str) -> None:
        """Wait before looking again whether somebody is there.

        Raises:
            TurnFailedError: the turn timeout has passed since the last sign of life.
        """
        course.misses += 1
        level = logging.WARNING if course.misses == 1 else logging.DEBUG
        logger.log(level, "turn_waits_for_engine", extra={"run": course.run, "cause": cause})
        now = asyncio.get_running_loop().time()
        pause_s = self._patience.pause_after(course.misses, _draw())
        if now + pause_s >= course.alive_at + self._patience.turn_timeout_s:
            away_s = now - course.alive_at
            raise TurnFailedError(f"the turn could not be had for {away_s:.0f} s, at last: {cause}")
        await asyncio.sleep(pause_s)

    async def _try(self, wire: EngineRequest, course: "_Course", *, may_call: bool) -> TurnReply:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._patience.turn_timeout_s) as patience:
            exchange = await self._engines.send(self._endpoint, wire)
            try:
                if exchange.status != 200:
                    await _raise_for(exchange, self._patience)
                reader, assembler = _reader_of(exchange), ReplyAssembler()
                while piece := await exchange.read():
                    # Pings of a held turn count too: whoever is merely held is not dead.
                    course.show_life()
                    patience.reschedule(loop.time() + self._patience.turn_timeout_s)
                    for data in reader.feed(piece):
                        assembler.take(data)
                    if assembler.is_full:
                        logger.warning("turn_without_end", extra={"run": course.run})
                        break
                for data in reader.end():
                    assembler.take(data)
                reply, parent = assembler.finished(may_call=may_call), _parent_in(exchange)
                return reply if parent is None else replace(reply, parent=parent)
            finally:
                exchange.close()


@dataclass(slots=True)
class _Course:
    """What one turn has been through. `alive_at`: the last sign of life, `misses`: since then nobody was there."""

    run: RunId
    alive_at: float
    failures: int = 0
    misses: int = 0

    def show_life(self) -> None:
        self.alive_at = asyncio.get_running_loop().time()
        self.misses = 0


async def _raise_for(exchange: Exchange, patience: Patience) -> None:
    """Raise what an error status means."""
    status = exchange.status
    if status == 429:
        value = next((value for name, value in exchange.headers if name == b"retry-after"), None)
        raise _RateLimitedError(retry_after_s(value, time.time(), otherwise_s=patience.rate_limit_pause_s))
    said = error_text(await _read_some(exchange))
    told = f"status {status}: {said}" if said else f"status {status}"
    if status in _NOBODY_THERE:
        raise _NobodyThereError(told)
    if status >= 500:
        raise _TryFailedError(told)
    raise _RefusedError(status, told)


def _reader_of(exchange: Exchange) -> EventReader | WholeReader:
    """Return what reads an answer: some engines know no streams and answer in one piece whatever they are asked."""
    kind = next((value for name, value in exchange.headers if name == b"content-type"), b"")
    return WholeReader() if kind.lower().startswith(b"application/json") else EventReader()


def _parent_in(exchange: Exchange) -> RunId | None:
    """Return the run that the door took as the parent; names of runs are short, and ASCII."""
    named = next((value for name, value in exchange.headers if name == b"x-luftpause-parent"), b"")
    return RunId(named.decode("ascii", "replace")[:_RUN_ID_MAX]) if named else None


async def _read_some(exchange: Exchange) -> bytes:
    body = b""
    while len(body) < _ERROR_BODY_MAX:
        piece = await exchange.read()
        if not piece:
            break
        body += piece
    return body
