"""An agent of Haystack, streamed, by its generator for each wire format."""

import os
import sys
from typing import Annotated

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from haystack.utils import Secret
from haystack_integrations.components.generators.anthropic import AnthropicChatGenerator
from haystack_integrations.components.generators.google_genai import GoogleGenAIChatGenerator

base, wire = sys.argv[1:]
os.environ |= {"ANTHROPIC_BASE_URL": base, "GOOGLE_GEMINI_BASE_URL": base}
COMMON = {"model": "fake", "api_key": Secret.from_token("x")}
GENERATORS = {
    "chat": lambda: OpenAIChatGenerator(api_base_url=base + "/v1", **COMMON),
    "responses": lambda: OpenAIResponsesChatGenerator(api_base_url=base + "/v1", **COMMON),
    "messages": lambda: AnthropicChatGenerator(**COMMON),
    "gemini": lambda: GoogleGenAIChatGenerator(**COMMON),
}


@tool
def get_weather(city: Annotated[str, "where"]) -> str:
    """Return the weather."""
    return f"sunny in {city}"


agent = Agent(chat_generator=GENERATORS[wire](), tools=[get_weather], streaming_callback=lambda _: None)
answer = agent.run(messages=[ChatMessage.from_user("Weather? [tools:2] [parallel:2]")])["messages"][-1].text
assert answer, "no text"
print(answer)
