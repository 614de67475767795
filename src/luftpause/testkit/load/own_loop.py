"""An agent with its own loop at the LLM door: turn, tools, turn, …, answer. Its tools only take time."""

import asyncio
import secrets
from dataclasses import dataclass

from luftpause.ports.engines import Header
from luftpause.testkit.load.closed_loop import OneRun
from luftpause.testkit.load.runs import RunNotes
from luftpause.testkit.load.tasks import context_text, task_text, tool_text
from luftpause.testkit.load.turns import Answer, Door, take_turn

TOOL_RESULT_CHARS = 400
_TOOL = {
    "type": "function",
    "function": {
        "name": "read_notes",
        "description": "Read what is known about a subject.",
        "parameters": {
            "type": "object",
            "properties": {"subject": {"type": "string", "maxLength": 80}},
            "required": ["subject"],
        },
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """What the agents do.

    Attributes:
        tool_calls: after so many a run must answer.
        tool_s: how long a tool takes, seconds.
        context_chars: length of the context of every run.
        max_tokens: longest reply of a turn, tokens.
        task: what every sub-agent is to do; empty makes tasks and contexts up.
    """

    model: str
    service_class: str
    caller: str
    tool_calls: int
    tool_s: float
    context_chars: int
    max_tokens: int
    task: str = ""


def own_loop(door: Door, habits: Habits) -> OneRun:
    """Return what one run of such an agent does."""
    batch = secrets.token_hex(8)

    async def one_run(notes: RunNotes) -> None:
        run = f"loadgen-{batch}-{notes.number}"
        headers = [(b"x-luftpause-run-id", run.encode()), (b"x-luftpause-class", habits.service_class.encode())]
        if habits.caller:
            headers.append((b"x-luftpause-caller", habits.caller.encode()))
        messages: list[dict[str, object]] = [
            {"role": "system", "content": context_text(run, habits.context_chars) or "You answer questions."},
            {"role": "user", "content": task_text(notes.number, habits.tool_calls)},
        ]
        while (answer := await _turn(door, habits, headers, messages, notes)).calls:
            messages.append(answer.message())
            await asyncio.sleep(habits.tool_s)
            for call in answer.calls.values():
                notes.tool_calls += 1
                result = tool_text(run, notes.tool_calls, TOOL_RESULT_CHARS)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    return one_run


async def _turn(
    door: Door, habits: Habits, headers: list[Header], messages: list[dict[str, object]], notes: RunNotes
) -> Answer:
    """Take one turn. Tools stay offered to the end, or the prompt would lose its prefix; the last turn forbids them."""
    spent = notes.tool_calls >= habits.tool_calls
    body: dict[str, object] = {
        "model": habits.model,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": habits.max_tokens,
        "tools": [_TOOL],
        "tool_choice": "none" if spent else "required",
    }
    answer = await take_turn(door, headers, body)
    notes.turns.append(answer.seen())
    if spent:
        answer.calls.clear()
    return answer
