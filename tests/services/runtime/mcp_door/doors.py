"""A door over real HTTP in front of a runtime of fakes, and the SDK's client at it."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from mcp import Client
from mcp.client import advertise
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, PrincipalId
from luftpause.ports.decisions import Decision, DecisionRequest
from luftpause.ports.turns import TurnReply, TurnRequest
from luftpause.services.runtime.http import build_app
from luftpause.services.runtime.mcp_door.runtime_door import DoorParts
from luftpause.services.runtime.mcp_door.tasks import TASKS_EXTENSION
from luftpause.services.runtime.orders import RuntimeSettings
from luftpause.testkit.mcp_transport import http_transport
from luftpause.testkit.serving import bind, serving, url_of
from services.runtime.runtime_fakes import (
    FakeTools,
    MemoryJournal,
    Say,
    World,
    answers_of,
    calls,
    look_once,
    runtime,
    text,
)

Mode = Literal["legacy", "auto"]
Answerer = Callable[[str], Awaitable[ElicitResult]]
both_eras = pytest.mark.parametrize("mode", ["legacy", "auto"])
KEY = bytes(range(32))


@dataclass
class FakeDecisions:
    """Says that the first label fits."""

    asked: list[DecisionRequest] = field(default_factory=list)

    async def decide(self, request: DecisionRequest) -> Decision:
        self.asked.append(request)
        labels = request.labels or ("spam",)
        return Decision(label=labels[0], probabilities={labels[0]: 0.75}, unscored=labels[1:], model="m")


@dataclass
class Door:
    world: World
    url: str
    decisions: FakeDecisions

    @asynccontextmanager
    async def client(
        self,
        mode: Mode = "auto",
        *,
        answer: Answerer | None = None,
        extensions: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Client]:
        """A client; with `answer` it shows forms, whose messages that is told."""

        async def elicit(context: object, params: ElicitRequestParams) -> ElicitResult:
            assert answer is not None
            return await answer(params.message)

        async with (
            create_mcp_http_client(headers=dict(headers or {})) as http,
            Client(
                http_transport(f"{self.url}/mcp", http),
                mode=mode,
                elicitation_callback=None if answer is None else elicit,
                extensions=[advertise(name) for name in extensions],
            ) as client,
        ):
            yield client


@asynccontextmanager
async def door(
    say: Say = look_once,
    *,
    tools: FakeTools | None = None,
    journal: MemoryJournal | None = None,
    settings: RuntimeSettings | None = None,
) -> AsyncIterator[Door]:
    decisions = FakeDecisions()
    async with runtime(say, tools=tools, journal=journal, settings=settings) as world:
        listener = bind("127.0.0.1", 0)
        url = url_of(listener)
        parts = DoorParts(decisions=decisions, state_key=KEY, version="0.1")
        async with serving(build_app(world.service, parts), listener, lifespan=True):
            yield Door(world, url, decisions)


def content(result: CallToolResult) -> dict[str, Any]:
    """The structured content, which the text repeats."""
    assert not result.is_error, result.content
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert json.loads(block.text) == result.structured_content
    decoded: dict[str, Any] = json.loads(block.text)
    return decoded


def complaint(result: CallToolResult) -> str:
    assert result.is_error
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def spawn(client: Client, task: str = "find the moon", **more: object) -> str:
    return str(content(await client.call_tool("spawn", {"task": task, **more}))["handle"])


async def run_of(client: Client, handle: str) -> dict[str, Any]:
    """How a run stands."""
    (run,) = content(await client.call_tool("status", {"handles": [handle]}))["runs"]
    found: dict[str, Any] = run
    return found


async def look_twice(request: TurnRequest) -> TurnReply:
    """A model that asks `look` twice at once, then repeats what it heard."""
    heard = answers_of(request)
    return text(" / ".join(heard)) if heard else calls(("look", '{"at": "moon"}'), ("look", '{"at": "sun"}'))


ASKS: dict[str, Any] = {"approveTools": ["look"]}
"""Arguments of a spawn whose calls of `look` have to be allowed."""

TASKS = (TASKS_EXTENSION,)


async def allow(_message: str) -> ElicitResult:
    return ElicitResult(action="accept", content={"allow": True})


async def decline(_message: str) -> ElicitResult:
    return ElicitResult(action="decline")


async def until_asked(it: Door, *handles: str, principal: PrincipalId = ANONYMOUS_PRINCIPAL) -> None:
    """Return once these runs wait for somebody to allow a call."""
    for handle in handles:
        async with aclosing(it.world.service.changes(principal, [handle])) as changes:
            async for view in changes:
                if view.pending_approvals:
                    break
