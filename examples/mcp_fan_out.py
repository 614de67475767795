"""Six sub-agents at once over the MCP door, on the official client: python examples/mcp_fan_out.py [URL [TOOL]].

The tools are those of the configuration; `luftpause up` without one offers `lookup`.
"""

import asyncio
import os
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7000/mcp"
TOOL = sys.argv[2] if len(sys.argv) > 2 else "lookup"
CITIES = ("Bonn", "Rome", "Oslo", "Kyoto", "Lima", "Accra")
TOKEN = os.environ.get("LUFTPAUSE_TOKEN")
HEADERS = {"x-luftpause-caller": "examples", **({"authorization": f"Bearer {TOKEN}"} if TOKEN else {})}


async def called(client: Client, tool: str, arguments: dict) -> dict:
    """Return the structured answer of a call."""
    answer = await client.call_tool(tool, arguments)
    if answer.is_error:
        sys.exit(f"{tool}: {answer.content[0].text}")
    return answer.structured_content


async def main() -> None:
    """Spawn all, then wait for all with one call."""
    async with (
        httpx2.AsyncClient(headers=HEADERS, timeout=httpx2.Timeout(30, read=180)) as http,
        Client(streamable_http_client(URL, http_client=http)) as client,
    ):
        orders = [
            {
                "task": f"Look up {city} and say one sentence about it.",
                "tools": [TOOL],
                "serviceClass": "interactive",  # or "batch": goes when nobody waits
            }
            for city in CITIES
        ]
        spawned = await asyncio.gather(*(called(client, "spawn", order) for order in orders))
        handles = [each["handle"] for each in spawned]
        awaited = await called(client, "await", {"handles": handles, "mode": "all", "timeout": 120})
        for city, run in zip(CITIES, awaited["runs"], strict=True):
            print(f"{city}: {run['status']}, {run['toolCalls']} calls: {run['result'] or run['error']}")


asyncio.run(main())
