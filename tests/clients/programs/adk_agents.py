"""An agent of Google's ADK, streamed, that asks another one, which calls a function."""

import asyncio
import os
import sys

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

base = sys.argv[1]
os.environ |= {"GOOGLE_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": base}
model = Gemini(model="fake")
TASK = "Ask. [tools:1] [tool:bee] [arg:request=Weather? {tools:2} {parallel:2}]"


def get_weather(city: str) -> str:
    """Return the weather."""
    return f"sunny in {city}"


async def main() -> None:
    bee = LlmAgent(name="bee", model=model, description="Knows the weather.", tools=[get_weather])
    runner = InMemoryRunner(LlmAgent(name="leader", model=model, tools=[AgentTool(bee)]), app_name="weather")
    session = await runner.session_service.create_session(app_name="weather", user_id="me")
    said = types.Content(role="user", parts=[types.Part(text=TASK)])
    answer = ""
    async for event in runner.run_async(
        user_id="me",
        session_id=session.id,
        new_message=said,
        run_config=RunConfig(streaming_mode=StreamingMode.SSE),
    ):
        if event.is_final_response() and event.content:
            answer = "".join(part.text or "" for part in event.content.parts)
    assert answer, "no text"
    print(answer)


asyncio.run(main())
