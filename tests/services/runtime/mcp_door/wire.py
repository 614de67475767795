"""Requests of the sessionless era by hand, for what the SDK's client cannot say or hides."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from luftpause.services.runtime.mcp_door.tasks import TASKS_EXTENSION

VERSION = "2026-07-28"
Json = dict[str, Any]


class Wire:
    """Speaks JSON-RPC to a door. What its requests say of the client stands in `capabilities`."""

    def __init__(self, http: httpx2.AsyncClient, capabilities: Mapping[str, object]) -> None:
        self._http = http
        self._meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": dict(capabilities),
        }

    @staticmethod
    @asynccontextmanager
    async def at(
        url: str, extensions: Mapping[str, object] | None = None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator["Wire"]:
        """One that knows tasks and shows forms."""
        known = {TASKS_EXTENSION: {}} if extensions is None else extensions
        async with httpx2.AsyncClient(base_url=url, timeout=30, headers=dict(headers or {})) as http:
            yield Wire(http, {"elicitation": {}, "extensions": known})

    def request(self, method: str, params: Json, name: str | None) -> tuple[Json, dict[str, str]]:
        """Body and headers of a request."""
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": self._meta}}
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": VERSION,
            "mcp-method": method,
            **({} if name is None else {"mcp-name": name}),
        }
        return body, headers

    async def _answer(self, method: str, params: Json, name: str | None) -> Json:
        body, headers = self.request(method, params, name)
        response = await self._http.post("/mcp", json=body, headers=headers)
        text = response.text
        answer: Json = json.loads(text) if text.startswith("{") else messages_in(text)[-1]
        return answer

    async def ok(self, method: str, params: Json, name: str | None = None) -> Json:
        """The result of a request."""
        answer = await self._answer(method, params, name)
        assert "result" in answer, answer
        result: Json = answer["result"]
        return result

    async def refused(self, method: str, params: Json, name: str | None = None) -> Json:
        """The error of a request."""
        answer = await self._answer(method, params, name)
        assert "error" in answer, answer
        error: Json = answer["error"]
        return error

    async def call(self, tool: str, arguments: Json) -> Json:
        """The result of a tool."""
        return await self.ok("tools/call", {"name": tool, "arguments": arguments}, name=tool)

    async def tell_of_tasks(self, tasks: Sequence[object]) -> list[Json]:
        """All that a subscription to tasks is told until it ends by itself."""
        body, headers = self.request("subscriptions/listen", {"notifications": {"taskIds": list(tasks)}}, None)
        response = await self._http.post("/mcp", json=body, headers=headers)
        return messages_in(response.text)


def messages_in(stream: str) -> list[Json]:
    """The messages of a stream of server-sent events."""
    return [json.loads(line.removeprefix("data: ")) for line in stream.splitlines() if line.startswith("data: ")]
