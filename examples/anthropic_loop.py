"""An agent with a loop of its own, on the anthropic package: python examples/anthropic_loop.py [URL [TASK]].

The door speaks Messages, whatever the engine speaks.
"""

import os
import sys
import uuid

from anthropic import Anthropic

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
TASK = sys.argv[2] if len(sys.argv) > 2 else "What is the weather in Bonn?"

client = Anthropic(
    base_url=URL,
    api_key=os.environ.get("LUFTPAUSE_TOKEN", "none"),
    default_headers={
        "x-luftpause-run-id": f"weather-{uuid.uuid4()}",  # these turns are one run; else it is recognised
        "x-luftpause-class": "interactive",  # or "batch": goes when nobody waits
        "x-luftpause-caller": "examples",  # callers share an engine fairly
    },
)
TOOLS = [
    {
        "name": "get_weather",
        "description": "Tells the weather of a city.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
]


def get_weather(city: str = "") -> str:
    """Return the weather; here it is always fine."""
    return f"sunny in {city}"


model = client.models.list().data[0].id
messages: list = [{"role": "user", "content": TASK}]
for _ in range(8):
    answer = client.messages.create(model=model, max_tokens=200, messages=messages, tools=TOOLS)
    calls = [block for block in answer.content if block.type == "tool_use"]
    if not calls:
        break
    messages.append({"role": "assistant", "content": answer.content})
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": get_weather(**call.input)} for call in calls]
    messages.append({"role": "user", "content": results})
print("".join(block.text for block in answer.content if block.type == "text"))
