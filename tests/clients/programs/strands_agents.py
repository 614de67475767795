"""An agent of strands with a tool, streamed, as it always asks."""

import sys

from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.models.openai import OpenAIModel
from strands.models.openai_responses import OpenAIResponsesModel

base, wire = sys.argv[1:]


@tool
def get_weather(city: str) -> str:
    """Return the weather.

    Args:
        city: where.
    """
    return f"sunny in {city}"


def model():
    if wire == "messages":
        arguments = {"base_url": base, "api_key": "x"}
        return AnthropicModel(client_args=arguments, model_id="fake", max_tokens=200)
    kind = OpenAIModel if wire == "chat" else OpenAIResponsesModel
    return kind(client_args={"base_url": base + "/v1", "api_key": "x"}, model_id="fake")


agent = Agent(model=model(), tools=[get_weather], callback_handler=None)
answer = str(agent("Weather in Bonn? [tools:3] [parallel:2]"))
assert answer.strip(), "no text"
print(answer)
