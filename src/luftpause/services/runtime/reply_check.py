"""What a model's reply comes to before it is recorded: calls that it wrote as text, and a call that was cut.

Calls that the engine told of are left as they are, and then its text is only text.
"""

import logging
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from luftpause.core.dialects.text_calls.recover import recover
from luftpause.core.model.ids import ToolCallId
from luftpause.core.runs.messages import AssistantMessage, ToolCall
from luftpause.core.runs.tools import find
from luftpause.ports.turns import TurnReply, TurnRequest
from luftpause.services.runtime.tool_check import parse_arguments

_LENGTH: Final = "length"
logger = logging.getLogger("luftpause.runtime")


def checked(reply: TurnReply, request: TurnRequest) -> TurnReply:
    """Return the reply to a request with the calls that are in it. A run that may not call at once has the first."""
    cut = reply.finish == _LENGTH
    if reply.message.tool_calls:
        return replace(reply, message=_with_cut_marked(reply.message)) if cut else reply
    if not request.tools:
        return reply
    found = recover(reply.message.text, lambda name: find(request.tools, name) is not None, cut=cut)
    if found is None:
        return reply
    wanted = found.calls if request.parallel_tool_calls else found.calls[:1]
    forms = sorted({call.form for call in wanted})
    logger.info("tool_calls_recovered", extra={"run": request.run, "calls": len(wanted), "forms": forms})
    calls = tuple(
        ToolCall(
            call=ToolCallId(f"call_{secrets.token_urlsafe(16)}"),
            tool=call.name,
            arguments=call.arguments,
            recovered_from=call.form,
            cut=call.cut,
        )
        for call in wanted
    )
    return replace(reply, message=AssistantMessage(text=found.text, tool_calls=calls))


def _with_cut_marked(message: AssistantMessage) -> AssistantMessage:
    """Only the last call can have been cut; nothing where its arguments would begin may be their beginning too."""
    last = message.tool_calls[-1]
    if last.arguments.strip() and parse_arguments(last.arguments) is not None:
        return message
    calls: Sequence[ToolCall] = (*message.tool_calls[:-1], replace(last, cut=True))
    return replace(message, tool_calls=tuple(calls))
