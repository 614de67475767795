"""A LangGraph agent that calls another one as a tool, which calls a function."""

import asyncio
import sys

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

base, wire = sys.argv[1:]
if wire == "messages":
    model = ChatAnthropic(model="fake", base_url=base, api_key="x", max_retries=0)
else:
    model = ChatOpenAI(
        model="fake", base_url=base + "/v1", api_key="x", max_retries=0, use_responses_api=wire == "responses"
    )


def get_weather(city: str) -> str:
    """Return the weather."""
    return f"sunny in {city}"


inner = create_agent(model, tools=[get_weather])


async def ask(question: str) -> str:
    """Ask somebody."""
    told = await inner.ainvoke({"messages": [("user", question)]})
    return told["messages"][-1].text


async def main() -> None:
    outer = create_agent(model, tools=[ask])
    task = "Weather? [tools:1] [arg:question=Bonn? {tools:1}]"
    texts = []
    async for piece, about in outer.astream({"messages": [("user", task)]}, stream_mode="messages"):
        if about["langgraph_node"] == "model":
            texts.append(piece.text)
    assert "".join(texts), "no text"
    print("".join(texts))


asyncio.run(main())
