"""An agent of Pydantic AI: python examples/pydantic_ai_agent.py [URL [TASK]]. Needs pydantic-ai-slim[openai]."""

import asyncio
import os
import sys
import uuid

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
TASK = sys.argv[2] if len(sys.argv) > 2 else "What is the weather in Bonn?"

client = AsyncOpenAI(
    base_url=f"{URL}/v1",
    api_key=os.environ.get("LUFTPAUSE_TOKEN", "none"),
    default_headers={
        "x-luftpause-run-id": f"weather-{uuid.uuid4()}",  # these turns are one run; else it is recognised
        "x-luftpause-class": "interactive",  # or "batch": goes when nobody waits
        "x-luftpause-caller": "examples",  # callers share an engine fairly
    },
)


def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"sunny in {city}"


async def main() -> None:
    """Run the agent; its loop is Pydantic AI's."""
    model = (await client.models.list()).data[0].id
    agent = Agent(OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client)), tools=[get_weather])
    print((await agent.run(TASK)).output)


asyncio.run(main())
