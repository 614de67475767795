"""An agent on LangGraph: python examples/langgraph_agent.py [URL [TASK]]. Needs langchain and langchain-openai."""

import os
import sys
import uuid

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from openai import OpenAI

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
TASK = sys.argv[2] if len(sys.argv) > 2 else "What is the weather in Bonn?"
KEY = os.environ.get("LUFTPAUSE_TOKEN", "none")

model = ChatOpenAI(
    base_url=f"{URL}/v1",
    api_key=KEY,
    model=OpenAI(base_url=f"{URL}/v1", api_key=KEY).models.list().data[0].id,
    default_headers={
        "x-luftpause-run-id": f"weather-{uuid.uuid4()}",  # these turns are one run; else it is recognised
        "x-luftpause-class": "interactive",  # or "batch": goes when nobody waits
        "x-luftpause-caller": "examples",  # callers share an engine fairly
    },
)


def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"sunny in {city}"


agent = create_agent(model, tools=[get_weather])
told = agent.invoke({"messages": [("user", TASK)]})
print(told["messages"][-1].text)
