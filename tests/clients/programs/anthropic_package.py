"""A tool loop with the anthropic package, streamed."""

import sys

from anthropic import Anthropic

client = Anthropic(base_url=sys.argv[1], api_key="x", max_retries=0)
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
messages = [{"role": "user", "content": "Weather in Bonn? [tools:2] [parallel:2]"}]
while True:
    with client.messages.stream(
        model="fake", max_tokens=999, messages=messages, tools=[{"name": "get_weather", "input_schema": SCHEMA}]
    ) as stream:
        message = stream.get_final_message()
    calls = [block for block in message.content if block.type == "tool_use"]
    if not calls:
        break
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny"} for call in calls]
    messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
assert message.content[0].text, "no text"
print(message.content[0].text)
