"""A prompt of magentic with a function. It makes up ids of its own for the calls that it tells of."""

import sys

from magentic import OpenaiChatModel, prompt_chain
from magentic.chat_model.anthropic_chat_model import AnthropicChatModel

base, wire = sys.argv[1:]
if wire == "messages":
    model = AnthropicChatModel("fake", base_url=base, api_key="x")
else:
    model = OpenaiChatModel("fake", base_url=base + "/v1", api_key="x")


def get_weather(city: str) -> str:
    """Return the weather."""
    return f"sunny in {city}"


@prompt_chain("Weather in {city}? [tools:2] [parallel:1]", functions=[get_weather], model=model)
def weather(city: str) -> str: ...


answer = weather("Bonn")
assert answer, "no text"
print(answer)
