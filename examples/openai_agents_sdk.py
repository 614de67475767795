"""An agent of the OpenAI Agents SDK: python examples/openai_agents_sdk.py [URL [TASK]]. Needs openai-agents."""

import asyncio
import os
import sys
import uuid

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from openai import AsyncOpenAI

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
TASK = sys.argv[2] if len(sys.argv) > 2 else "What is the weather in Bonn?"

set_tracing_disabled(True)  # else its traces go elsewhere
client = AsyncOpenAI(
    base_url=f"{URL}/v1",
    api_key=os.environ.get("LUFTPAUSE_TOKEN", "none"),
    default_headers={
        "x-luftpause-run-id": f"weather-{uuid.uuid4()}",  # these turns are one run; else it is recognised
        "x-luftpause-class": "interactive",  # or "batch": goes when nobody waits
        "x-luftpause-caller": "examples",  # callers share an engine fairly
    },
)


@function_tool
def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"sunny in {city}"


async def main() -> None:
    """Run the agent; its loop is the SDK's."""
    model = (await client.models.list()).data[0].id
    agent = Agent(
        name="weather",
        instructions="Answer in one sentence.",
        tools=[get_weather],
        model=OpenAIChatCompletionsModel(model=model, openai_client=client),
    )
    result = await Runner.run(agent, TASK)
    print(result.final_output)


asyncio.run(main())
