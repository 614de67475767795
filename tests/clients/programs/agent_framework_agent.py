"""An agent of Microsoft's Agent Framework, streamed."""

import asyncio
import sys

from agent_framework import Agent
from agent_framework.anthropic import AnthropicClient
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from anthropic import AsyncAnthropic

base, wire = sys.argv[1:]
OPENAI = {"model": "fake", "base_url": base + "/v1", "api_key": "x"}
CLIENTS = {
    "chat": lambda: OpenAIChatCompletionClient(**OPENAI),
    "responses": lambda: OpenAIChatClient(**OPENAI),
    "messages": lambda: AnthropicClient(
        model="fake", anthropic_client=AsyncAnthropic(base_url=base, api_key="x", max_retries=0)
    ),
}
KEPT_NOWHERE = {"store": False} if wire == "responses" else {}


def get_weather(city: str) -> str:
    """Return the weather."""
    return f"sunny in {city}"


async def main() -> None:
    agent = Agent(client=CLIENTS[wire](), tools=[get_weather], default_options=KEPT_NOWHERE)
    answer = ""
    async for update in agent.run("Weather? [tools:2] [parallel:2]", stream=True):
        answer += update.text
    assert answer, "no text"
    print(answer)


asyncio.run(main())
