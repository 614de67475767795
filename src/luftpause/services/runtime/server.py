"""The MCP door: its tools over the official SDK's low-level server, for both eras of the protocol.

Handlers only translate and wait; a client that leaves ends its own wait and nothing else.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal

import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from starlette.requests import Request

from luftpause.core.model.ids import ModelName, RunId
from luftpause.core.model.principals import ANONYMOUS, Principal
from luftpause.core.model.turns import ServiceClass
from luftpause.core.runs.tools import ToolSpec
from luftpause.core.runs.view import RunView
from luftpause.ports.asgi import principal_of
from luftpause.services.runtime.identity import caller_of
from luftpause.services.runtime.orders import NotKeptError, SpawnOrder, SpawnRefusedError, UnknownHandleError
from luftpause.services.runtime.schema_fit import misfit, shown
from luftpause.services.runtime.service import RuntimeService
from luftpause.services.runtime.soundness import oddity
from luftpause.services.runtime.tool_list import tools_with

Context = ServerRequestContext[object, Request]
Answer = dict[str, object]

INSTRUCTIONS: Final = (
    "Sub-agents on local models. spawn starts one and returns a handle at once; spawn all you need, then await their"
    " handles together. A sub-agent sees only its task, its system prompt and the tools that it was given."
)


class _SpawnArguments(msgspec.Struct, rename="camel"):
    task: str
    model: str | None = None
    service_class: ServiceClass | None = None
    system: str | None = None
    max_tool_calls: int | None = None
    tools: tuple[str, ...] | None = None
    max_tokens: int | None = None
    parallel_tool_calls: bool = False
    parent: str | None = None


class _AwaitArguments(msgspec.Struct):
    handles: list[str]
    mode: Literal["all", "any"] = "all"
    timeout: float | None = None


class _StatusArguments(msgspec.Struct):
    handles: list[str] | None = None


class _CancelArguments(msgspec.Struct):
    handle: str


class RuntimeTools:
    """The handlers behind the MCP server."""

    def __init__(self, service: RuntimeService, version: str) -> None:
        self._service = service
        self._settings = service.settings
        self._offered = tools_with(service.settings)
        self._schemas = {tool.name: tool.input_schema for tool in self._offered}
        self._handlers: dict[str, Callable[[Context, Mapping[str, object]], Awaitable[Answer]]] = {
            "spawn": self._spawn,
            "await": self._await,
            "status": self._status,
            "cancel": self._cancel,
            "tools": self._tools,
        }
        self.server: Server[object] = Server(
            "luftpause",
            version=version,
            title="luftpause",
            instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
        )

    async def list_tools(self, _context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        """Return all tools, always in the same order."""
        return ListToolsResult(tools=list(self._offered))

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        """Run one tool. What the client got wrong comes back as the tool's error, in words.

        Raises:
            MCPError: there is no such tool.
        """
        handler = self._handlers.get(params.name)
        if handler is None:
            raise MCPError(code=INVALID_PARAMS, message=f"there is no tool {shown(params.name)}")
        arguments = params.arguments or {}
        complaint = oddity(arguments) or misfit(arguments, self._schemas[params.name])
        if complaint:
            return _error(f"{params.name}: {complaint}")
        try:
            answer = await handler(context, arguments)
        # Arguments too many to be judged show here what is wrong with them.
        except (SpawnRefusedError, UnknownHandleError, NotKeptError, msgspec.ValidationError) as refusal:
            return _error(f"{params.name}: {refusal}")
        text = msgspec.json.encode(answer).decode()
        return CallToolResult(content=[TextContent(text=text)], structured_content=answer)

    async def _spawn(self, context: Context, arguments: Mapping[str, object]) -> Answer:
        # Not strictly: the schema was checked, and to JSON 2.0 is an integer too.
        asked = msgspec.convert(arguments, _SpawnArguments, strict=False)
        principal = _principal(context)
        service_class = asked.service_class or principal.usual_class
        refusal = principal.refusal_of(service_class)
        if refusal:
            raise SpawnRefusedError(refusal)
        headers = {} if context.request is None else context.request.headers
        order = SpawnOrder(
            task=asked.task,
            principal=principal.name,
            caller=caller_of(headers, dict(context.meta or {}), principal.name, max_bytes=self._settings.caller_bytes),
            model=None if asked.model is None else ModelName(asked.model),
            service_class=service_class,
            system=asked.system,
            tools=asked.tools,
            max_tool_calls=self._settings.max_tool_calls if asked.max_tool_calls is None else asked.max_tool_calls,
            max_tokens=self._settings.max_tokens if asked.max_tokens is None else asked.max_tokens,
            parallel_tool_calls=asked.parallel_tool_calls,
            parent=None if asked.parent is None else RunId(asked.parent),
        )
        return {"handle": await self._service.spawn(order)}

    async def _await(self, context: Context, arguments: Mapping[str, object]) -> Answer:
        asked = msgspec.convert(arguments, _AwaitArguments)
        timeout_s = self._settings.await_default_s if asked.timeout is None else asked.timeout
        principal = _principal(context).name
        clock = asyncio.get_running_loop().time
        began = clock()
        while True:
            waited = clock() - began
            runs = self._service.look(principal, asked.handles)
            over = sum(run.result is not None or run.error is not None for run in runs)
            # At once, and again and again: clients and proxies drop calls that show no life.
            await context.session.report_progress(waited, timeout_s, f"{over} of {len(runs)} runs are over")
            step = min(self._settings.progress_every_s, max(timeout_s - waited, 0.0))
            if await self._service.wait(principal, asked.handles, asked.mode, step) or waited + step >= timeout_s:
                return {"runs": [_run(run) for run in self._service.look(principal, asked.handles)]}

    async def _status(self, context: Context, arguments: Mapping[str, object]) -> Answer:
        asked = msgspec.convert(arguments, _StatusArguments)
        principal = _principal(context).name
        if asked.handles is None:
            runs = list(self._service.look_at_all(principal).runs)
        else:
            runs = self._service.look(principal, asked.handles)
        return {"runs": [_run(run) for run in runs]}

    async def _cancel(self, context: Context, arguments: Mapping[str, object]) -> Answer:
        asked = msgspec.convert(arguments, _CancelArguments)
        return _run(await self._service.cancel(_principal(context).name, asked.handle))

    async def _tools(self, _context: Context, _arguments: Mapping[str, object]) -> Answer:
        return {"tools": [_tool(tool) for tool in await self._service.catalogue()]}


def _principal(context: Context) -> Principal:
    return ANONYMOUS if context.request is None else principal_of(context.request.scope)


def _error(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def _run(run: RunView) -> Answer:
    return {
        "handle": run.spawn.run,
        "status": run.status.value,
        "result": run.result,
        "error": run.error,
        "parent": run.spawn.parent,
        "children": list(run.children),
        "toolCalls": run.own.tool_calls,
        "failedToolCalls": run.own.failed_tool_calls,
    }


def _tool(tool: ToolSpec) -> Answer:
    return {
        "name": tool.name,
        "server": tool.server,
        "description": tool.description,
        "inputSchema": dict(tool.schema),
        "readOnly": tool.hints.read_only,
        "destructive": tool.hints.destructive and not tool.hints.read_only,
        "idempotent": tool.hints.idempotent,
    }
