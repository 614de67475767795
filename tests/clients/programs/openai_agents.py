"""An agent of openai-agents that calls another one as a tool, which calls a function."""

import asyncio
import os
import sys

from agents import Agent, ModelSettings, Runner, function_tool, set_tracing_disabled
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import OpenAIResponsesModel
from openai import AsyncOpenAI

base, wire = sys.argv[1:]
os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
set_tracing_disabled(True)
client = AsyncOpenAI(base_url=base + "/v1", api_key="x", max_retries=0)
kind = OpenAIChatCompletionsModel if wire == "chat" else OpenAIResponsesModel
model = kind(model="fake", openai_client=client)


@function_tool
def get_weather(city: str) -> str:
    """Return the weather."""
    return f"sunny in {city}"


async def main() -> None:
    settings = ModelSettings(store=False) if wire == "responses" else ModelSettings()
    inner = Agent(name="inner", instructions="Look.", tools=[get_weather], model=model, model_settings=settings)
    ask = inner.as_tool(tool_name="ask", tool_description="Asks somebody.")
    outer = Agent(name="outer", instructions="Ask.", tools=[ask], model=model, model_settings=settings)
    result = Runner.run_streamed(outer, "Weather? [tools:1] [arg:input=Bonn? {tools:1}]")
    async for _ in result.stream_events():
        pass
    assert result.final_output, "no text"
    print(result.final_output)


asyncio.run(main())
