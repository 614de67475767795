"""A planned run as the messages of a chat, of about as many tokens as planned. Pure; knows no HTTP and no time.

For the fake engine, orders in the last user message say how long the reply is and whether it calls tools, and four
characters are a token. A real engine is told the length alone, and a word is a token; it calls no tools, so what is
played there are turns with pauses between them. There each run has a system message of its own, or all would share the
one that the template has, of which the plan knows nothing.
"""

from dataclasses import dataclass, field
from typing import Final

from luftpause.testkit.load.tasks import context_text
from luftpause.testkit.load.turns import Answer
from luftpause.testkit.sim.plans import Leg, RunPlan

Json = dict[str, object]

CHARS_PER_TOKEN: Final = 4
CALL_CHARS_PER_TOKEN: Final = 6
CALL_FRAME_CHARS: Final = len('{"subject": ""}')
CALL_TOKENS_MAX: Final = 80
"""One call is no longer, as the fake engine takes arguments up to a length; a longer reply has several calls."""
MESSAGE_TOKENS: Final = 4
REAL_OPENING_TOKENS: Final = 30
"""What the small model's template adds to a first prompt, our own system message included, as it counts them."""
REAL_MESSAGE_TOKENS: Final = 17
"""What it adds for each further turn."""

TOOL: Final[Json] = {
    "type": "function",
    "function": {
        "name": "read",
        "parameters": {"type": "object", "properties": {"subject": {"type": "string"}}, "required": ["subject"]},
    },
}


@dataclass(slots=True)
class Conversation:
    """What was said so far. `real`: the engine is no fake."""

    plan: RunPlan
    model: str
    real: bool = False
    messages: list[Json] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def body(self, number: int) -> Json:
        """Return the request of a turn, after those before it were answered."""
        leg = self.plan.legs[number]
        self._add(leg, number)
        body: Json = {
            "model": self.model,
            "messages": self.messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": leg.reply_tokens if self.real else self.plan.reply_tokens_max,
        }
        return {**body, "ignore_eos": True, "temperature": 0.0} if self.real else {**body, "tools": [TOOL]}

    def take(self, answer: Answer) -> None:
        """Take in the answer to the last request."""
        self.messages.append(answer.message())
        self.calls = [call.id for call in answer.calls.values()]

    def _add(self, leg: Leg, number: int) -> None:
        name = f"{self.plan.run}/{number}"
        orders = "" if self.real else _orders(leg, name)
        if not self.messages and self.plan.shared_tokens:
            shared = self._text(self.plan.shared_name, self.plan.shared_tokens)
            self.messages.append({"role": "system", "content": shared})
        spent = MESSAGE_TOKENS + len(orders) // CHARS_PER_TOKEN
        if self.real:
            spent = REAL_MESSAGE_TOKENS if self.messages else REAL_OPENING_TOKENS
        if self.real and not self.messages:
            self.messages.append({"role": "system", "content": name})
        results: list[Json] = []
        for nth, call in enumerate(self.calls):
            text = "done" if nth else self._text(name, leg.new_tokens - spent - MESSAGE_TOKENS * len(self.calls))
            results.append({"role": "tool", "tool_call_id": call, "content": text})
        self.messages += results
        own = "Go on." if results else self._text(name, leg.new_tokens - spent)
        self.messages.append({"role": "user", "content": f"{own} {orders}".strip()})
        self.calls = []

    def _text(self, name: str, tokens: int) -> str:
        chars = max(0, tokens) * CHARS_PER_TOKEN
        if not self.real:
            return context_text(name, chars)
        return " ".join(context_text(name, 2 * chars + 40).split()[: max(1, tokens)])


def _orders(leg: Leg, name: str) -> str:
    """Return the markers that make the fake engine reply as planned."""
    if not leg.paused:
        return f"[tools:0] [tokens:{leg.reply_tokens}]"
    calls = -(-leg.reply_tokens // CALL_TOKENS_MAX)
    return f"[tools:1] [parallel:{calls}] [arg:subject={argument(leg.reply_tokens // calls, name)}]"


def argument(call_tokens: int, name: str) -> str:
    """Return the argument of a call that the fake engine needs so many tokens for."""
    return context_text(name, max(1, (call_tokens - 1) * CALL_CHARS_PER_TOKEN - CALL_FRAME_CHARS))
