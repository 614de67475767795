"""Agents of smolagents, one managed by the other. They echo no ids: calls and results become text.

The answer is a call too, and the last thing that a run says. Where the steps are used up, the beginning of the
conversation is replaced, and what follows is another run: nobody could know it again.
"""

import sys

from smolagents import OpenAIServerModel, ToolCallingAgent, tool


@tool
def get_weather(city: str) -> str:
    """Return the weather.

    Args:
        city: where.
    """
    return f"sunny in {city} [tool:final_answer]"


model = OpenAIServerModel(model_id="fake", api_base=sys.argv[1] + "/v1", api_key="x")
inner = ToolCallingAgent(tools=[get_weather], model=model, max_steps=3, name="inner", description="Looks.")
outer = ToolCallingAgent(tools=[], managed_agents=[inner], model=model, max_steps=3)
answer = outer.run("Weather? [tools:1] [tool:inner] [arg:task=Bonn? {tools:1}]")
assert answer, "no text"
print(answer)
