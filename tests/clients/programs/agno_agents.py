"""A team of agno: its leader hands a task to a member, which calls a function."""

import sys

from agno.agent import Agent
from agno.models.anthropic import Claude
from agno.models.openai import OpenAIResponses
from agno.models.openai.like import OpenAILike
from agno.team import Team

base, wire = sys.argv[1:]


def model():
    if wire == "messages":
        return Claude(id="fake", api_key="x", client_params={"base_url": base})
    kind = OpenAILike if wire == "chat" else OpenAIResponses
    return kind(id="fake", base_url=base + "/v1", api_key="x")


def get_weather(city: str) -> str:
    """Return the weather."""
    return f"sunny in {city}"


member = Agent(name="Bee", model=model(), tools=[get_weather], telemetry=False)
team = Team(model=model(), members=[member], telemetry=False)
task = "Weather? {tools:2} {parallel:2}"
answer = team.run(f"Ask Bee. [tools:1] [tool:delegate_task_to_member] [arg:member_id=bee] [arg:task={task}]").content
assert answer, "no text"
print(answer)
