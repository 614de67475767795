"""One tool server: an owner task that connects, lists, waits for the end and connects again.

The SDK's client answers a lost server with a CancelledError in whoever calls it, or never works again. So it lives in
the owner task, every call runs in a small task of its own, and callers only wait for that.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final, cast

from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    CallToolResult,
    PaginatedRequestParams,
    RequestParamsMeta,
    Tool,
)
from pydantic import ValidationError

from luftpause.adapters.tools_mcp.results import failure, outcome_of
from luftpause.adapters.tools_mcp.transports import ToolServerSpec, transport
from luftpause.ports.tools import ToolOutcome

LISTED_TOOLS_MAX: Final = 1000
KEY_FIELD: Final = "luftpause/idempotencyKey"
_LOST_SESSION: Final = ("session not found", "session terminated")
_BROKEN: Final = ("connection closed", "stream ended")
logger = logging.getLogger("luftpause.tools")


@dataclass(frozen=True, slots=True)
class _Link:
    """One connection while it lasts."""

    client: Client
    lost: asyncio.Event


class _BrokeOffError(Exception):
    """The connection died while the call was under way."""


class _NotRunError(Exception):
    """The server forgot our session before it looked at the call."""


class ServerConnection:
    """Keeps one tool server at hand. `start` it, then `close` it."""

    def __init__(self, spec: ToolServerSpec) -> None:
        self.spec = spec
        self.tools: tuple[Tool, ...] = ()
        self._attempt: asyncio.Future[_Link | None] = asyncio.get_running_loop().create_future()
        self._tried = asyncio.Event()
        self._cause = "not connected yet"
        self._owner: asyncio.Task[None] | None = None
        self._calls: set[asyncio.Task[CallToolResult]] = set()

    def start(self) -> None:
        """Begin connecting, in the background."""
        self._owner = asyncio.create_task(self._own(), name=f"tool server {self.spec.name}")

    async def close(self) -> None:
        """End calls under way and the connection; a child process is stopped."""
        tasks = [*self._calls, *([] if self._owner is None else [self._owner])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def tried(self) -> None:
        """Return once the first attempt to connect has ended, well or badly."""
        await self._tried.wait()

    async def call(self, tool: str, arguments: Mapping[str, object], key: str, *, repeatable: bool) -> ToolOutcome:
        """Call a tool; see the port. A call that surely did not run, or may run twice, is made once more."""
        for last_try in (False, True):
            link = await self._link()
            if link is None:
                return failure(f"tool server {self.spec.name!r} is unavailable: {self._cause}")
            try:
                return await self._call_over(link, tool, arguments, key)
            except _NotRunError:
                link.lost.set()
            except _BrokeOffError:
                link.lost.set()
                if not repeatable:
                    break
            if last_try:
                break
            await asyncio.sleep(0)  # lets the owner see the loss first
        return failure(
            f"tool server {self.spec.name!r} broke off during this call; whether it took effect is unknown",
            unknown=True,
        )

    async def _link(self) -> _Link | None:
        """Return the connection; wait for an attempt under way, but not for one that is to come."""
        done, _ = await asyncio.wait({self._attempt}, timeout=self.spec.connect_timeout_s)
        return self._attempt.result() if done and self._attempt.done() else None

    async def _call_over(self, link: _Link, tool: str, arguments: Mapping[str, object], key: str) -> ToolOutcome:
        meta = cast("RequestParamsMeta", {KEY_FIELD: key})
        task = asyncio.create_task(link.client.call_tool(tool, dict(arguments), meta=meta))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        gone = asyncio.create_task(link.lost.wait())
        try:
            await asyncio.wait({task, gone}, timeout=self.spec.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if not task.done() and gone.done():
                await asyncio.wait({task}, timeout=1.0)  # its answer may be on its way still
                raise _BrokeOffError
            if not task.done():
                return failure(f"no answer within {self.spec.timeout_s:g} s", unknown=True)
            return self._outcome(task)
        finally:
            task.cancel()
            gone.cancel()

    def _outcome(self, task: "asyncio.Task[CallToolResult]") -> ToolOutcome:
        if task.cancelled():
            raise _BrokeOffError
        error = task.exception()
        if error is None:
            return outcome_of(task.result())
        if isinstance(error, MCPError):
            told = error.message.lower()
            if error.code == INVALID_REQUEST and any(sign in told for sign in _LOST_SESSION):
                raise _NotRunError
            if error.code == CONNECTION_CLOSED and any(sign in told for sign in _BROKEN):
                raise _BrokeOffError
            return failure(error.message)
        logger.warning("tool_call_failed", extra={"server": self.spec.name}, exc_info=error)
        if isinstance(error, ValidationError | RuntimeError):
            return failure(f"tool server {self.spec.name!r} gave an answer that breaks its own promises: {error}")
        raise _BrokeOffError

    async def _own(self) -> None:
        backoff_s = self.spec.backoff_s
        while True:
            connected = await self._hold()
            if connected:
                backoff_s = self.spec.backoff_s
                continue
            await asyncio.sleep(backoff_s)
            backoff_s = min(backoff_s * 2, self.spec.backoff_max_s)
            self._attempt = asyncio.get_running_loop().create_future()

    async def _hold(self) -> bool:
        """Connect and stay until the connection is lost. False when it never came about."""
        lost = asyncio.Event()
        connected = False
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self.spec.connect_timeout_s):
                    client = await stack.enter_async_context(Client(transport(self.spec, lost.set), client_info=None))
                    self.tools = await _listed(client)
                connected = True
                self._attempt.set_result(_Link(client, lost))
                self._tried.set()
                logger.info("tool_server_connected", extra={"server": self.spec.name, "tools": len(self.tools)})
                await lost.wait()
                self._renew("the connection was lost")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self._report(connected, None)
        except (Exception, BaseExceptionGroup) as error:  # the SDK raises whatever its transports do
            logger.debug("tool_server_error", extra={"server": self.spec.name}, exc_info=True)
            self._report(connected, error)
        return connected

    def _renew(self, cause: str) -> None:
        """From now on callers wait for the next attempt."""
        self._cause = cause
        if self._attempt.done():
            self._attempt = asyncio.get_running_loop().create_future()

    def _report(self, connected: bool, error: BaseException | None) -> None:
        cause = _innermost(error)
        logger.warning("tool_server_lost", extra={"server": self.spec.name, "error": cause})
        if connected:
            self._renew(cause)
            return
        self._cause = cause
        self._tried.set()
        if not self._attempt.done():
            self._attempt.set_result(None)


def _innermost(error: BaseException | None) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return "the connection was lost" if error is None else str(error) or type(error).__name__


async def _listed(client: Client) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    cursor: str | None = None
    while len(tools) < LISTED_TOOLS_MAX:
        page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        tools.extend(page.tools)
        cursor = page.next_cursor
        if cursor is None:
            break
    return tuple(tools[:LISTED_TOOLS_MAX])
