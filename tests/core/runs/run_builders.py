"""Short ways to write runs, replies and calls in tests of the runs core."""

from dataclasses import replace

from luftpause.core.model.ids import CallerId, Instant, ModelName, PrincipalId, RunId, ToolCallId
from luftpause.core.model.turns import ServiceClass, Usage
from luftpause.core.runs.advance import Decision, decide
from luftpause.core.runs.events import Event, RunSpawned, ToolCallIntended, ToolReturned, TurnTaken
from luftpause.core.runs.messages import AssistantMessage, ToolCall
from luftpause.core.runs.state import CallingTools, Concluding, Generating, State
from luftpause.core.runs.tools import ToolSpec

NOW = Instant(0.0)


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


def after(*events: Event, state: State | None = None) -> Decision:
    """The decision on the last of these events."""
    decision = Decision(state=state or State())
    for event in events:
        decision = decide(decision.state, event, NOW)
    return decision


def dateless(state: State) -> State:
    """The state with every phase dated 0, to compare what was lived with what was replayed."""
    runs = state.runs
    for run, known in state.runs.items():
        if isinstance(known.phase, Generating | CallingTools | Concluding):
            runs = runs.set(run, replace(known, phase=replace(known.phase, since=NOW)))
    return replace(state, runs=runs)
