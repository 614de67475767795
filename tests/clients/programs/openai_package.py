"""A tool loop with the openai package, streamed."""

import json
import sys

from openai import OpenAI

base, wire = sys.argv[1:]
client = OpenAI(base_url=base + "/v1", api_key="x", max_retries=0)
TASK = "Weather in Bonn? [tools:2] [parallel:2]"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def by_chat():
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    messages = [{"role": "user", "content": TASK}]
    while True:
        with client.chat.completions.stream(model="fake", messages=messages, tools=tools) as stream:
            message = stream.get_final_completion().choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message.model_dump(include={"role", "content", "tool_calls"}))
        messages += [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in message.tool_calls]


def by_responses():
    tools = [{"type": "function", "name": "get_weather", "parameters": SCHEMA}]
    items = [{"role": "user", "content": TASK}]
    while True:
        with client.responses.stream(model="fake", input=items, tools=tools, store=False) as stream:
            response = stream.get_final_response()
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        for call in calls:
            json.loads(call.arguments)
        items += [item.model_dump(exclude={"parsed_arguments"}) for item in response.output]
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in calls]


answer = by_chat() if wire == "chat" else by_responses()
assert answer, "no text"
print(answer)
