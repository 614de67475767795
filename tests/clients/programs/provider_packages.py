"""A tool loop with a provider's own package that speaks Chat Completions."""

import sys
from functools import partial

base, _, package = sys.argv[1:]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Weather.", "parameters": SCHEMA}}]


def create():
    if package == "groq":
        from groq import Groq

        return Groq(base_url=base, api_key="x", max_retries=0).chat.completions.create
    if package == "together":
        from together import Together

        return Together(base_url=base, api_key="x", max_retries=0).chat.completions.create
    if package == "cerebras-cloud-sdk":
        from cerebras.cloud.sdk import Cerebras

        return Cerebras(base_url=base, api_key="x", max_retries=0).chat.completions.create
    if package == "mistralai":
        from mistralai.client import Mistral

        return Mistral(api_key="x", server_url=base).chat.complete
    from huggingface_hub import InferenceClient

    return InferenceClient(base_url=base, api_key="x").chat.completions.create


ask = partial(create(), model="fake", tools=TOOLS)
messages = [{"role": "user", "content": "Weather in Bonn? [tools:2] [parallel:2]"}]
while calls := (message := ask(messages=messages).choices[0].message).tool_calls:
    told = [{"id": call.id, "type": "function", "function": call.function} for call in calls]
    messages.append({"role": "assistant", "content": message.content or "", "tool_calls": told})
    messages += [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in calls]

assert message.content, "no text"
print(message.content)
