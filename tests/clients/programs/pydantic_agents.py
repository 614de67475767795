"""An agent of pydantic-ai that calls another one in a tool, which calls a function."""

import asyncio
import sys

from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

base, wire = sys.argv[1:]


def model():
    if wire == "messages":
        return AnthropicModel("fake", provider=AnthropicProvider(api_key="x", base_url=base))
    if wire == "gemini":
        return GoogleModel("fake", provider=GoogleProvider(api_key="x", base_url=base))
    kind = OpenAIChatModel if wire == "chat" else OpenAIResponsesModel
    return kind("fake", provider=OpenAIProvider(base_url=base + "/v1", api_key="x"))


def get_weather(city: str) -> str:
    """Return the weather."""
    return f"sunny in {city}"


inner = Agent(model(), tools=[get_weather])


async def ask(question: str) -> str:
    """Ask somebody."""
    return (await inner.run(question)).output


async def main() -> None:
    outer = Agent(model(), tools=[ask])
    async with outer.run_stream("Weather? [tools:1] [arg:question=Bonn? {tools:1}]") as result:
        text = await result.get_output()
    assert text, "no text"
    print(text)


asyncio.run(main())
