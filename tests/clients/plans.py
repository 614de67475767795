"""What the model of a client says that is an MCP client of ours: an engine that follows a plan.

At once: it spawns all its look-ups in one answer, then awaits their handles. One after another: it runs each and hears
of it before the next. Then it says that it is done.
"""

import json
import re
import time
from dataclasses import dataclass, field
from typing import Any, Final

from clients.case import MODEL

_HANDLE: Final = re.compile(r"run_[A-Za-z0-9_-]{22}")
_TASK: Final = "[tools:1] [tool:lookup] look up city number {number}"
_HEAD: Final = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n"


@dataclass
class Plan:
    """One client's model. `seconds`: from its first question with tools to its last, which is what the tools took."""

    look_ups: int
    at_once: bool
    asked_at: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return self.asked_at[-1] - self.asked_at[0] if self.asked_at else 0.0

    def reply(self, body: bytes) -> bytes:
        """Answer a question in Chat Completions."""
        chat = json.loads(body)
        offered = [tool["function"]["name"] for tool in chat.get("tools") or ()]
        if not any(_is(name, "spawn") for name in offered):
            return _answer([])  # a side question, a title perhaps
        self.asked_at.append(time.monotonic())
        return _answer(self._calls(chat["messages"], offered))

    def _calls(self, messages: list[dict[str, Any]], offered: list[str]) -> list[tuple[str, dict[str, object]]]:
        rounds = sum(bool(message.get("tool_calls")) for message in messages)
        if self.at_once and rounds == 0:
            return [(_named(offered, "spawn"), _look_up(number)) for number in range(self.look_ups)]
        if self.at_once and rounds == 1:
            told = json.dumps([message for message in messages if message["role"] == "tool"])
            return [(_named(offered, "await"), {"handles": sorted(set(_HANDLE.findall(told))), "timeout": 60})]
        if not self.at_once and rounds < self.look_ups:
            return [(_named(offered, "run"), _look_up(rounds))]
        return []


def _look_up(number: int) -> dict[str, object]:
    return {"task": _TASK.format(number=number), "model": MODEL, "tools": ["lookup"]}


def _is(name: str, tool: str) -> bool:
    return re.search(rf"(?:^|[^A-Za-z]){tool}$", name) is not None


def _named(offered: list[str], tool: str) -> str:
    return next(name for name in offered if _is(name, tool))


def _answer(calls: list[tuple[str, dict[str, object]]]) -> bytes:
    made = [
        {
            "index": place,
            "id": f"call_{time.monotonic_ns()}_{place}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for place, (name, arguments) in enumerate(calls)
    ]
    delta = {"role": "assistant", "tool_calls": made} if made else {"role": "assistant", "content": "All looked up."}
    finish = "tool_calls" if made else "stop"
    head = {"id": f"chatcmpl-{time.monotonic_ns()}", "object": "chat.completion.chunk"}
    chunks: list[dict[str, object]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}},
    ]
    body = "".join(f"data: {json.dumps({**head, **chunk})}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return (_HEAD.format(length=len(body)) + body).encode()
