"""A tool loop with litellm, streamed, by its provider for each wire format."""

import sys

import litellm

base, wire = sys.argv[1:]
PROVIDERS = {
    "chat": ("openai/fake", "/v1"),
    "responses": ("openai/responses/fake", "/v1"),
    "messages": ("anthropic/fake", ""),
    "gemini": ("gemini/fake", "/v1beta"),
}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]

model, path = PROVIDERS[wire]
messages = [{"role": "user", "content": "Weather in Bonn? [tools:3] [parallel:2]"}]
while True:
    chunks = list(
        litellm.completion(
            model=model, api_base=base + path, api_key="x", messages=messages, tools=TOOLS, stream=True, num_retries=0
        )
    )
    message = litellm.stream_chunk_builder(chunks, messages=messages).choices[0].message
    if not message.tool_calls:
        break
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls:
        result = {"tool_call_id": call.id, "name": call.function.name, "content": "sunny"}
        messages.append({"role": "tool", **result})

assert message.content, "no text"
print(message.content)
