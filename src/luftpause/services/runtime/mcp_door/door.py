"""The door itself: the SDK's low-level server with tools, tasks and subscriptions, whatever the tools do.

A question that a tool asks back in the sessionless era may carry state. It is sealed here, for one principal, one tool
and one set of arguments, with a key that outlives the process.
"""

from collections.abc import Sequence
from typing import Any, Final

from mcp.server.caching import CacheHint
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, ListToolsResult, PaginatedRequestParams

from luftpause.services.runtime.mcp_door.calls import Context, OfferedTool, ToolCall, who_asks
from luftpause.services.runtime.mcp_door.subscriptions import Subscriptions
from luftpause.services.runtime.mcp_door.tasks import Tasks
from luftpause.services.runtime.schema_words import shown

NAME: Final = "luftpause"
STATE_TTL_S: Final = 7 * 24 * 3600.0
"""How long a question can be answered: people go home, and the run waits."""

TOOL_LIST_TTL_MS: Final = 60_000
INSTRUCTIONS: Final = (
    "Sub-agents on local models. spawn starts one and returns a handle at once; spawn all you need, then await their"
    " handles together. A sub-agent sees only its task, its system prompt and the tools that it was given."
)


class McpDoor:
    """Answers MCP requests. `server` is what a transport serves."""

    def __init__(
        self,
        offered: Sequence[OfferedTool],
        tasks: Tasks,
        subscriptions: Subscriptions,
        *,
        version: str,
        state_key: bytes,
    ) -> None:
        self._offered = {each.tool.name: each for each in offered}
        self.server: Server[object] = Server(
            NAME,
            version=version,
            title=NAME,
            instructions=INSTRUCTIONS,
            # Which tools there are depends on nobody; what the defaults are may change with the next start.
            cache_hints={"tools/list": CacheHint(ttl_ms=TOOL_LIST_TTL_MS, scope="public")},
            get_tool_input_schema=self._schema_of,
            on_list_tools=self._list_tools,
            on_subscriptions_listen=subscriptions.listen,
        )
        self.server.add_request_handler("tools/call", CallToolRequestParams, self._call_tool)
        tasks.serve_on(self.server)
        security = RequestStateSecurity(keys=[state_key], ttl=STATE_TTL_S, bind_principal=_bound_to)
        self.server.middleware.append(RequestStateBoundary(security, default_audience=NAME))

    async def _list_tools(self, _context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        """Return all tools, always in the same order."""
        return ListToolsResult(tools=[each.tool for each in self._offered.values()])

    async def _call_tool(self, context: Context, params: CallToolRequestParams) -> HandlerResult:
        offered = self._offered.get(params.name)
        if offered is None:
            raise MCPError(code=INVALID_PARAMS, message=f"there is no tool {shown(params.name)}")
        return await offered.answer(ToolCall(context=context, params=params))

    def _schema_of(self, name: str) -> dict[str, object] | None:
        offered = self._offered.get(name)
        return None if offered is None else offered.tool.input_schema


def _bound_to(context: ServerRequestContext[Any, Any]) -> str:
    return who_asks(context).name
