"""One call of a tool, and what the door knows of whoever makes it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from mcp.server.context import HandlerResult, ServerRequestContext
from mcp_types import CallToolRequestParams, Tool
from mcp_types.version import is_version_at_least
from starlette.requests import Request

from luftpause.core.model.principals import ANONYMOUS, Principal
from luftpause.ports.asgi import principal_of

SESSIONLESS_SINCE = "2026-07-28"
"""The first version of the protocol whose requests stand alone. The ones before it have sessions."""

GONE_KEY = "luftpause.gone"
"""Key in a request's scope of an event that is set when its client leaves. In a session nothing else tells."""

Context: TypeAlias = ServerRequestContext[object, Request]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call whose tool exists. Its arguments are as the client sent them."""

    context: Context
    params: CallToolRequestParams

    @property
    def arguments(self) -> Mapping[str, object]:
        """What the tool is called with."""
        return self.params.arguments or {}

    def without_nulls(self) -> "ToolCall":
        """Return the call without the arguments that are null: so many clients and models say "left out"."""
        given = {name: value for name, value in self.arguments.items() if value is not None}
        return replace(self, params=self.params.model_copy(update={"arguments": given}))

    @property
    def principal(self) -> Principal:
        """Who calls."""
        return who_asks(self.context)

    @property
    def gone(self) -> asyncio.Event:
        """Set once nobody is there any more to read the result."""
        scope = {} if self.context.request is None else self.context.request.scope
        gone: asyncio.Event | None = scope.get(GONE_KEY)
        return asyncio.Event() if gone is None else gone


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """A tool of the door and what answers it."""

    tool: Tool
    answer: Callable[[ToolCall], Awaitable[HandlerResult]]


def who_asks(context: Context) -> Principal:
    """Return the principal that makes a request."""
    return ANONYMOUS if context.request is None else principal_of(context.request.scope)


def is_sessionless(context: Context) -> bool:
    """Whether a request stands alone: it cannot be asked back, its answer can be a question or a task."""
    return is_version_at_least(context.protocol_version, SESSIONLESS_SINCE)


def shows_forms(context: Context) -> bool:
    """Whether the client can show its user a form. Saying nothing of its kinds means forms."""
    capabilities = context.session.client_capabilities
    kinds = None if capabilities is None else capabilities.elicitation
    return kinds is not None and (kinds.form is not None or kinds.url is None)


def has_extension(context: Context, name: str) -> bool:
    """Whether the client declared an extension of the protocol."""
    capabilities = context.session.client_capabilities
    return capabilities is not None and name in (capabilities.extensions or {})
