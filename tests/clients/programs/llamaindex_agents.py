"""An agent of LlamaIndex, streamed, by its integration for each wire format."""

import asyncio
import sys

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.google_genai import GoogleGenAI
from llama_index.llms.openai_like import OpenAILike, OpenAILikeResponses

base, wire = sys.argv[1:]
OPENAI = {"model": "fake", "api_base": base + "/v1", "api_key": "x", "is_function_calling_model": True}
MODELS = {
    "chat": lambda: OpenAILike(is_chat_model=True, **OPENAI),
    "responses": lambda: OpenAILikeResponses(**OPENAI),
    "gemini": lambda: GoogleGenAI(model="fake", api_key="x", http_options={"base_url": base}),
}


def get_weather(city: str) -> str:
    """Return the weather."""
    return f"sunny in {city}"


async def main() -> None:
    answer = str(await FunctionAgent(tools=[get_weather], llm=MODELS[wire]()).run("Weather? [tools:2] [parallel:2]"))
    assert answer, "no text"
    print(answer)


asyncio.run(main())
