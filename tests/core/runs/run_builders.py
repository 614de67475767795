"""Short ways to write runs, replies and calls in tests of the runs core."""

from dataclasses import replace

from luftpause.core.model.ids import ActiveMs, CallerId, ModelName, PrincipalId, RunId, ToolCallId
from luftpause.core.model.turns import ServiceClass, Usage
from luftpause.core.runs.actions import Record, TakeTurn
from luftpause.core.runs.advance import decide
from luftpause.core.runs.decision import Decision
from luftpause.core.runs.events import (
    ApprovalAsked,
    ApprovalDecided,
    ApprovalScope,
    Event,
    MessageSent,
    RunSpawned,
    ToolCallIntended,
    ToolReturned,
    TurnTaken,
)
from luftpause.core.runs.messages import AssistantMessage, ToolCall
from luftpause.core.runs.replay import Entry, History
from luftpause.core.runs.state import State
from luftpause.core.runs.tools import ToolSpec

NOW = ActiveMs(0)


def tool(name: str) -> ToolSpec:
    return ToolSpec(name=name, server="s", tool=name, description=f"{name}s", schema={"type": "object"})


def spawned(
    run: str = "r", *, parent: str | None = None, budget: int = 8, tools: tuple[str, ...] = ("look",)
) -> RunSpawned:
    return RunSpawned(
        run=RunId(run),
        task=f"task of {run}",
        model=ModelName("m"),
        service_class=ServiceClass.INTERACTIVE,
        caller=CallerId("c"),
        principal=PrincipalId("p"),
        tools=tuple(map(tool, tools)),
        max_tool_calls=budget,
        parent=None if parent is None else RunId(parent),
    )


def said(text: str, *calls: str, run: str = "r") -> TurnTaken:
    asked = tuple(ToolCall(call=ToolCallId(call), tool="look", arguments="{}") for call in calls)
    return TurnTaken(
        run=RunId(run),
        message=AssistantMessage(text=text, tool_calls=asked),
        finish="stop",
        usage=Usage(prompt_tokens=10, completion_tokens=5),
        took_ms=100,
    )


def intended(call: str, *, repeatable: bool = True, run: str = "r") -> ToolCallIntended:
    return ToolCallIntended(run=RunId(run), call=ToolCallId(call), repeatable=repeatable)


def returned(call: str, text: str = "found", *, failed: bool = False, run: str = "r") -> ToolReturned:
    return ToolReturned(run=RunId(run), call=ToolCallId(call), text=text, failed=failed, took_ms=30)


def after(*events: Event, state: State | None = None, now: int = 0) -> Decision:
    """The decision on the last of these events."""
    decision = Decision(state=state or State())
    for event in events:
        decision = decide(decision.state, event, ActiveMs(now))
    return decision


def history(run: str, *events: Event, damage: str = "") -> History:
    return History(run=RunId(run), entries=tuple(Entry(event, NOW) for event in events), damage=damage)


def asked(call: str, *, repeatable: bool = False, run: str = "r") -> ApprovalAsked:
    return ApprovalAsked(run=RunId(run), call=ToolCallId(call), tool="s__look", reason="it asks", repeatable=repeatable)


def decided(
    call: str, *, allow: bool = True, scope: ApprovalScope = ApprovalScope.ONCE, run: str = "r"
) -> ApprovalDecided:
    return ApprovalDecided(run=RunId(run), call=ToolCallId(call), allow=allow, by="me", scope=scope)


def sent(text: str = "more", run: str = "r") -> MessageSent:
    return MessageSent(run=RunId(run), text=text)


def used(tokens: int, *calls: str, run: str = "r", text: str = "") -> TurnTaken:
    """A turn that cost so many tokens."""
    return replace(said(text, *calls, run=run), usage=Usage(prompt_tokens=tokens, completion_tokens=0))


def recorded(decision: Decision) -> tuple[Event, ...]:
    """All that a decision orders to record."""
    return tuple(action.event for action in decision.actions if isinstance(action, Record))


def the_turn(*events: Event, state: State | None = None, now: int = 0) -> TakeTurn:
    """The turn that the last of these events orders, and nothing else."""
    decision = after(*events, state=state, now=now)
    (action,) = decision.actions
    assert isinstance(action, TakeTurn)
    return action
