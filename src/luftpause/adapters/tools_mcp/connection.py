"""One tool server: an owner task that connects, lists, waits for the end and connects again.

The SDK's client answers a lost server with a CancelledError in whoever calls it, or never works again. So it lives in
the owner task, every call runs in a small task of its own, and callers only wait for that. All runs share the
connection: it ends when its transport says so, and never for anything that a call was answered.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from contextvars import Context
from dataclasses import dataclass
from typing import Final, cast

from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    CallToolResult,
    JSONRPCRequest,
    PaginatedRequestParams,
    RequestParamsMeta,
    Tool,
)

from luftpause.adapters.tools_mcp.changes import PAUSE_S, Changes, first_of
from luftpause.adapters.tools_mcp.isolation import Break, End, break_of
from luftpause.adapters.tools_mcp.patience import Patience
from luftpause.adapters.tools_mcp.results import failure, outcome_of
from luftpause.adapters.tools_mcp.slots import NoRoomError, Slots
from luftpause.adapters.tools_mcp.transports import ToolServerSpec, transport
from luftpause.ports.tools import ToolOutcome

LISTED_TOOLS_MAX: Final = 1000
_LONG_WAIT_S: Final = 1.0
_LAST_ANSWERS_S: Final = 1.0
"""Of a connection that ended, answers may be on their way still."""
_TRIES_MAX: Final = 3
_STREAM_BROKE: Final = ("SSE stream ", "Connection closed")
"""How the SDK says that an answer will never come. A server may say so too, of its own call."""
_STREAM_UNREADABLE: Final = "SSE stream failed"
logger = logging.getLogger("luftpause.tools")


@dataclass(frozen=True, slots=True)
class _Link:
    """One connection while it lasts."""

    client: Client
    lost: asyncio.Event


class _BrokeOffError(Exception):
    """The answer of this call will never come."""


class _NotRunError(Exception):
    """The server never saw the call."""


class ServerConnection:
    """Keeps one tool server at hand. `start` it, then `close` it."""

    def __init__(self, spec: ToolServerSpec) -> None:
        self.spec = spec
        self.tools: tuple[Tool, ...] = ()
        self._link: _Link | None = None
        self._back = asyncio.Event()
        self._away_since = asyncio.get_running_loop().time()
        self._tried = asyncio.Event()
        self._cause = "not connected yet"
        self._owner: asyncio.Task[None] | None = None
        self._is_closing = False
        self._calls: set[asyncio.Task[CallToolResult]] = set()
        self._slots = Slots(spec.concurrency)

    def start(self) -> None:
        """Begin connecting, in the background."""
        self._owner = asyncio.create_task(self._own(), name=f"tool server {self.spec.name}")

    async def close(self) -> None:
        """End calls under way and the connection; a child process is stopped."""
        self._is_closing = True
        tasks = [*self._calls, *([] if self._owner is None else [self._owner])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def was_tried(self) -> bool:
        """Whether the first attempt to connect has ended, well or badly."""
        return self._tried.is_set()

    @property
    def cause(self) -> str:
        """Why there is no connection now, in words; empty while there is one."""
        return "" if self._link is not None else self._cause

    async def tried(self) -> None:
        """Return once the first attempt to connect has ended, well or badly."""
        await self._tried.wait()

    async def call(
        self, tool: str, arguments: Mapping[str, object], meta: Mapping[str, str], *, repeatable: bool
    ) -> ToolOutcome:
        """Call a tool; see the port. A call that surely did not run, or may run twice, is made again a few times.

        `meta` goes with it as the call's `_meta`.
        """
        unsendable = _unsendable(tool, arguments)
        if unsendable:
            return failure(f"these arguments cannot be sent: {unsendable}")
        try:
            async with self._slots.hold() as waited_s:
                if waited_s >= _LONG_WAIT_S:
                    logger.info("tool_call_waited", extra={"server": self.spec.name, "waited_s": round(waited_s, 1)})
                return await self._call(tool, arguments, meta, repeatable=repeatable)
        except NoRoomError as error:
            return failure(f"tool server {self.spec.name!r} is busy: {error}")

    async def _call(
        self, tool: str, arguments: Mapping[str, object], meta: Mapping[str, str], *, repeatable: bool
    ) -> ToolOutcome:
        outcome_unknown = False
        for _ in range(_TRIES_MAX):
            link = await self._reach()
            if link is None:
                break
            try:
                return await self._call_over(link, tool, arguments, meta)
            except _NotRunError:
                continue
            except _BrokeOffError:
                outcome_unknown = True
                if not repeatable:
                    break
        if outcome_unknown and not repeatable:
            return failure(
                f"tool server {self.spec.name!r} broke off during this call; whether it took effect is unknown",
                unknown=True,
            )
        return failure(f"tool server {self.spec.name!r} is unavailable: {self._cause}", unknown=outcome_unknown)

    async def _reach(self) -> _Link | None:
        """Return the connection. A server that went away a moment ago is waited for, one that is long gone is not."""
        try:
            async with asyncio.timeout_at(self._away_since + self.spec.grace_s):
                while self._link is None:
                    await self._back.wait()
        except TimeoutError:
            return None
        return self._link

    async def _call_over(
        self, link: _Link, tool: str, arguments: Mapping[str, object], meta: Mapping[str, str]
    ) -> ToolOutcome:
        ours = cast("RequestParamsMeta", dict(meta))
        patience = Patience(asyncio.get_running_loop().time, self.spec.timeout_s, self.spec.timeout_max_s)
        calling = link.client.call_tool(tool, dict(arguments), meta=ours, progress_callback=patience.progressed)
        # In a context of its own: else the SDK overwrites the call's trace with that of whoever spawned the run.
        task = asyncio.create_task(calling, context=Context())
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        gone = asyncio.create_task(link.lost.wait())
        try:
            while not task.done() and not gone.done() and (left_s := patience.left_s) > 0:
                await asyncio.wait({task, gone}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            if not task.done() and gone.done():
                await asyncio.wait({task}, timeout=_LAST_ANSWERS_S)
                if not task.done():
                    raise _BrokeOffError
            if not task.done():
                return failure(f"no answer within {patience.granted_s:g} s", unknown=True)
            return self._outcome(task, link)
        finally:
            task.cancel()
            gone.cancel()

    def _outcome(self, task: "asyncio.Task[CallToolResult]", link: _Link) -> ToolOutcome:
        if task.cancelled():
            raise _BrokeOffError
        error = task.exception()
        if error is None:
            return outcome_of(task.result())
        if isinstance(error, MCPError):
            broke = break_of(error.data)
            if broke is Break.NOT_SENT:
                raise _NotRunError
            if error.message.startswith(_STREAM_UNREADABLE):
                return failure(f"its answer cannot be read: {error.message}", unknown=True)
            if broke is Break.UNKNOWN or self._never_answered(error, link):
                raise _BrokeOffError
            return failure(error.message)
        logger.warning("tool_call_failed", extra={"server": self.spec.name}, exc_info=error)
        return failure(f"tool server {self.spec.name!r} gave an answer that breaks its own promises: {error}")

    def _never_answered(self, error: MCPError, link: _Link) -> bool:
        """Whether the SDK made this error up. Over stdio it does so only once the connection is lost."""
        if error.code != CONNECTION_CLOSED:
            return False
        return link.lost.is_set() or (bool(self.spec.url) and error.message.startswith(_STREAM_BROKE))

    async def _own(self) -> None:
        backoff_s, at_once = self.spec.backoff_s, False
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            ended = await self._hold()
            if ended is not None and clock() - began >= self.spec.settled_s:
                backoff_s, at_once = self.spec.backoff_s, False
            if self._is_closing:  # the SDK's own cancelling may have swallowed ours
                return
            # Whoever forgets a session takes a new one: it is opened at once, but not twice in a row.
            at_once = ended is End.FORGOTTEN and not at_once
            if not at_once:
                await asyncio.sleep(backoff_s)
                backoff_s = min(backoff_s * 2, self.spec.backoff_max_s)

    async def _hold(self) -> End | None:
        """Connect, stay until the connection ends and return how it did. None when it never came about."""
        lost, changes = asyncio.Event(), Changes()
        ended = End.LOST

        def end(how: End) -> None:
            nonlocal ended
            if not lost.is_set():
                ended = how
            lost.set()
            if self._link is not None and self._link.lost is lost:
                self._let_go(how.value)

        connected = False
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self.spec.connect_timeout_s):
                    client = await stack.enter_async_context(self._client(end, changes))
                    self.tools = await _listed(client, self.spec.name)
                connected = not lost.is_set()
                if connected:
                    self._link = _Link(client, lost)
                    self._back.set()
                    self._tried.set()
                    logger.info("tool_server_connected", extra={"server": self.spec.name, "tools": len(self.tools)})
                    await self._keep_listed(client, lost, changes)
                    if ended is End.FORGOTTEN and self._calls:  # other calls are about to be told the same
                        await asyncio.wait(self._calls, timeout=_LAST_ANSWERS_S)
            self._report(ended.value)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self._report(ended.value)
        except (Exception, BaseExceptionGroup) as error:  # the SDK raises whatever its transports do
            logger.debug("tool_server_error", extra={"server": self.spec.name}, exc_info=True)
            self._report(_innermost(error))
        finally:
            lost.set()
            self._tried.set()
        return ended if connected else None

    def _client(self, end: Callable[[End], None], changes: Changes) -> Client:
        return Client(transport(self.spec, end), client_info=None, message_handler=changes.heard)

    async def _keep_listed(self, client: Client, lost: asyncio.Event, changes: Changes) -> None:
        """List the tools again whenever they have changed, until the connection is lost."""
        subscribing = asyncio.create_task(changes.subscribe(client, self.spec.name))
        try:
            while True:
                await first_of(lost, changes.any)
                if lost.is_set():
                    return
                changes.any.clear()
                try:
                    async with asyncio.timeout(self.spec.connect_timeout_s):
                        self.tools = await _listed(client, self.spec.name)
                    logger.info("tools_listed_again", extra={"server": self.spec.name, "tools": len(self.tools)})
                except (MCPError, ValueError, TimeoutError) as error:
                    # What was known of its tools holds until it tells of them again.
                    logger.warning("tools_not_listed", extra={"server": self.spec.name, "error": _innermost(error)})
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(lost.wait(), PAUSE_S)
        finally:
            subscribing.cancel()
            await asyncio.gather(subscribing, return_exceptions=True)

    def _let_go(self, cause: str) -> None:
        """From now on callers wait for the next connection, for a while."""
        self._cause = cause
        if self._link is not None:
            self._link = None
            self._back.clear()
            self._away_since = asyncio.get_running_loop().time()

    def _report(self, cause: str) -> None:
        logger.warning("tool_server_lost", extra={"server": self.spec.name, "error": cause})
        self._let_go(cause)


def _unsendable(tool: str, arguments: Mapping[str, object]) -> str:
    """Return why a call cannot be written down, empty when it can: inside the SDK that would end the connection."""
    try:
        call = {"name": tool, "arguments": arguments}
        JSONRPCRequest(jsonrpc="2.0", id=0, method="tools/call", params=call).model_dump_json(exclude_unset=True)
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""


def _innermost(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return str(error) or type(error).__name__


async def _listed(client: Client, server: str) -> tuple[Tool, ...]:
    """Return a server's tools, each name once. What is left out is logged."""
    tools: dict[str, Tool] = {}
    cursor: str | None = None
    while True:
        page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        for tool in page.tools:
            if tool.name in tools:
                logger.warning("tool_listed_twice", extra={"server": server, "tool": tool.name})
            elif len(tools) < LISTED_TOOLS_MAX:
                tools[tool.name] = tool
            else:
                logger.warning("tools_left_out", extra={"server": server, "max": LISTED_TOOLS_MAX, "first": tool.name})
                return tuple(tools.values())
        cursor = page.next_cursor
        if cursor is None:
            return tuple(tools.values())
