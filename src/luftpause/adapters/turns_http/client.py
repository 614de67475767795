"""The turns port over the LLM door.

A 429 is waited out, as often as it takes. What may pass (no connection, a stream that breaks off, a 5xx; llama.cpp
answers 500 now and then when a reply broke its tool-call grammar) is tried again a few times. Anything else is final.
"""

import asyncio
import logging
import time
from typing import Final

from luftpause.adapters.turns_http.reply import BrokenReplyError, ReplyAssembler, error_text
from luftpause.adapters.turns_http.request import authorization, build
from luftpause.adapters.turns_http.retry import Patience, retry_after_s
from luftpause.adapters.turns_http.sse import EventReader, EventTooLongError
from luftpause.core.model.ids import RunId
from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineBrokeError, EngineRequest, Engines, EngineUnreachableError, Exchange
from luftpause.ports.turns import TurnFailedError, TurnReply, TurnRequest

_ERROR_BODY_MAX: Final = 64 * 1024
_END_RUN_TIMEOUT_S: Final = 10.0
logger = logging.getLogger("luftpause.turns")


class _TryFailedError(Exception):
    """This try failed; another may not."""


class _RateLimitedError(Exception):
    def __init__(self, pause_s: float) -> None:
        super().__init__(f"rate limited for {pause_s} s")
        self.pause_s = pause_s


class HttpTurns:
    """Takes turns at `endpoint`, the dataplane's base URL, presenting `token` unless it is empty."""

    def __init__(
        self, engines: Engines, endpoint: Endpoint, token: str = "", *, patience: Patience | None = None
    ) -> None:
        self._engines = engines
        self._endpoint = endpoint
        self._token = token
        self._patience = patience or Patience()

    async def take(self, request: TurnRequest) -> TurnReply:
        """Take a turn; see the port."""
        wire = build(request, self._token)
        failures = 0
        while True:
            try:
                return await self._try(wire)
            except _RateLimitedError as limit:
                logger.info("turn_rate_limited", extra={"run": request.run, "pause_s": limit.pause_s})
                await asyncio.sleep(limit.pause_s)
            except (_TryFailedError, BrokenReplyError, EventTooLongError, EngineBrokeError) as error:
                failures = await self._pause(request, failures, error)
            except EngineUnreachableError as error:
                failures = await self._pause(request, failures, f"the LLM door cannot be reached: {error}")
            except TimeoutError:
                silent_s = self._patience.turn_timeout_s
                failures = await self._pause(request, failures, f"no sign of life for {silent_s:g} s")

    async def end_run(self, run: RunId) -> None:
        """Let the scheduler forget the run; see the port."""
        wire = EngineRequest(
            method=b"DELETE", path=b"/v1/runs/" + run.encode(), headers=authorization(self._token), body=b""
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

    async def _pause(self, request: TurnRequest, failures: int, cause: Exception | str) -> int:
        """Wait before another try, and count.

        Raises:
            TurnFailedError: there have been enough.
        """
        failures += 1
        logger.info("turn_try_failed", extra={"run": request.run, "failures": failures, "cause": str(cause)})
        if failures >= self._patience.tries:
            raise TurnFailedError(f"the turn failed {failures} times, at last: {cause}")
        await asyncio.sleep(self._patience.pause_after(failures))
        return failures

    async def _try(self, wire: EngineRequest) -> TurnReply:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._patience.turn_timeout_s) as patience:
            exchange = await self._engines.send(self._endpoint, wire)
            try:
                if exchange.status != 200:
                    await _raise_for(exchange)
                reader, assembler = EventReader(), ReplyAssembler()
                while piece := await exchange.read():
                    # Pings of a held turn count too: whoever is merely held is not dead.
                    patience.reschedule(loop.time() + self._patience.turn_timeout_s)
                    for data in reader.feed(piece):
                        assembler.take(data)
                return assembler.finished()
            finally:
                exchange.close()


async def _raise_for(exchange: Exchange) -> None:
    """Raise what an error status means."""
    status = exchange.status
    if status == 429:
        value = next((value for name, value in exchange.headers if name == b"retry-after"), None)
        raise _RateLimitedError(retry_after_s(value, time.time()))
    said = error_text(await _read_some(exchange))
    told = f"status {status}: {said}" if said else f"status {status}"
    if status >= 500:
        raise _TryFailedError(told)
    raise TurnFailedError(f"the turn was refused with {told}")


async def _read_some(exchange: Exchange) -> bytes:
    body = b""
    while len(body) < _ERROR_BODY_MAX:
        piece = await exchange.read()
        if not piece:
            break
        body += piece
    return body
