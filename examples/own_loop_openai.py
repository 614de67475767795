"""An agent with a loop of its own, on the openai package: python examples/own_loop_openai.py [URL [TASK]]."""

import json
import os
import sys
import uuid

from openai import OpenAI

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
TASK = sys.argv[2] if len(sys.argv) > 2 else "What is the weather in Bonn?"

client = OpenAI(
    base_url=f"{URL}/v1",
    api_key=os.environ.get("LUFTPAUSE_TOKEN", "none"),
    default_headers={
        "x-luftpause-run-id": f"weather-{uuid.uuid4()}",  # these turns are one run; else it is recognised
        "x-luftpause-class": "interactive",  # or "batch": goes when nobody waits
        "x-luftpause-caller": "examples",  # callers share an engine fairly
    },
)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Tells the weather of a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


def get_weather(city: str = "") -> str:
    """Return the weather; here it is always fine."""
    return f"sunny in {city}"


model = client.models.list().data[0].id
messages: list = [{"role": "user", "content": TASK}]
for _ in range(8):
    message = client.chat.completions.create(model=model, messages=messages, tools=TOOLS, max_tokens=200)
    answer = message.choices[0].message
    if not answer.tool_calls:
        break
    messages.append(answer.model_dump(include={"role", "content", "tool_calls"}))
    for call in answer.tool_calls:
        result = get_weather(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
print(answer.content)
