"""What people are asked before a sub-agent's tool is called, and how their answers are read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
from mcp_types import ElicitRequest, ElicitRequestFormParams

from luftpause.core.model.ids import RunId, ToolCallId
from luftpause.core.runs.call_keys import key_of
from luftpause.core.runs.view import RunView

ARGUMENTS_SHOWN_MAX: Final = 2000
"""Characters of a call's arguments in a question; a form is no place to read a book."""

TASK_SHOWN_MAX: Final = 200

FORM: Final[dict[str, object]] = {
    "type": "object",
    "properties": {"allow": {"type": "boolean", "title": "Allow this call?"}},
    "required": ["allow"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One tool call that waits for an answer. `key` names it for ever: no other call of any run has it."""

    key: str
    run: RunId
    call: ToolCallId
    text: str

    def as_request(self) -> ElicitRequest:
        """Return the question as the client gets it in the sessionless era."""
        return ElicitRequest(params=ElicitRequestFormParams(message=self.text, requested_schema=dict(FORM)))


def questions_of(views: Iterable[RunView]) -> list[Question]:
    """Return what these runs wait to be told, in order."""
    return [
        Question(
            key=key_of(view.spawn.run, view.own.turns, pending.call),
            run=view.spawn.run,
            call=pending.call,
            text=_text(view, pending.tool, pending.arguments, pending.reason),
        )
        for view in views
        for pending in view.pending_approvals
    ]


def allows(answer: Mapping[str, object]) -> bool:
    """Whether an answer to the form allows the call. Whatever is not a clear yes is a no."""
    content = answer.get("content")
    return answer.get("action") == "accept" and isinstance(content, Mapping) and content.get("allow") is True


def _text(view: RunView, tool: str, arguments: object, reason: str) -> str:
    shown = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return (
        f"A sub-agent wants to call {tool} with {_cut(shown, ARGUMENTS_SHOWN_MAX)}\n"
        f"You are asked because {reason}.\nIts task: {_cut(view.spawn.task, TASK_SHOWN_MAX)}"
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
