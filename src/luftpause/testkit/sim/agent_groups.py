"""The agents of a scenario: the `[[agents]]` tables of its file, and what cannot be in one. Decides nothing."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from luftpause.testkit.engine_model.figures import EngineFigures, Tokens

Count = Annotated[int, Meta(ge=0, le=100_000)]
Seconds = Annotated[float, Meta(ge=0, le=86_400)]
Share = Annotated[float, Meta(ge=0, le=1)]
Range = tuple[int, int]
"""Drawn evenly from so much to so much, both included."""

SIMULATED = "simulated"
"""What all agents ask for where a scenario names no models."""


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class Skewed(Table, frozen=True, kw_only=True):
    """Drawn log-normally, as lengths and counts of real agents are; what lies beyond an end is that end."""

    median: Annotated[float, Meta(gt=0, le=1e9)]
    sigma: Annotated[float, Meta(ge=0, le=4)]
    least: Count
    most: Annotated[int, Meta(ge=0, le=1 << 30)]


Amount = Range | Skewed


class ToolTimes(Table, frozen=True, kw_only=True):
    """How long a tool takes: log-normal, no longer than `most_s`. `share`: its weight among those of its group.

    `name`: as whoever sees its calls knows it; several of one name cannot be told apart, without one it has its own.
    """

    name: Annotated[str, Meta(pattern="^[a-z0-9-]{0,40}$")] = ""
    median_s: Seconds
    sigma: Annotated[float, Meta(ge=0, le=4)] = 0.0
    most_s: Seconds = 86_400.0
    share: Annotated[float, Meta(gt=0)] = 1.0


class People(Table, frozen=True, kw_only=True):
    """A person answers in place of a tool, and takes this long. `share`: of a run's rounds."""

    median_s: Seconds
    sigma: Annotated[float, Meta(ge=0, le=4)] = 0.0
    most_s: Seconds = 86_400.0
    share: Share


class Stragglers(Table, frozen=True, kw_only=True):
    """Some runs of a group take many more rounds than the others. `share`: of all its runs."""

    share: Share
    tool_calls: Amount


class Fan(Table, frozen=True, kw_only=True):
    """So many children at once. `share`: weight of this number among those of its fan-out."""

    children: Annotated[int, Meta(ge=1, le=1000)]
    share: Annotated[float, Meta(gt=0)] = 1.0


class FanOut(Table, frozen=True, kw_only=True):
    """After its rounds of tools, a run begins children and waits for them; then comes its last turn.

    Attributes:
        group: what the children are like; that group begins no runs of its own.
        sizes: what is drawn from for each run.
        awaits: the parent goes on when all children have ended, or any of them; the others go on by themselves.
    """

    group: str
    sizes: Annotated[tuple[Fan, ...], Meta(min_length=1)]
    awaits: Literal["all", "any"] = "all"


class AgentGroup(Table, frozen=True, kw_only=True):
    """Agents that do the same kind of work.

    Attributes:
        count: so many agents, each with one run at a time and the next at once: a closed loop.
        runs_per_min: instead of `count`, runs begin independently of each other at this mean rate: an open loop.
        burst: so many runs of an open loop begin together, so much more rarely.
        callers: the group's runs belong to so many callers in turn.
        principal: whom these callers belong to; empty: to nobody in particular, as without tokens.
        context_tokens: of the first prompt, below the system prompt.
        system_tokens: a system prompt that all runs of the group share, ahead of the rest.
        tool_calls: rounds of tool calls of a run, each followed by one more turn.
        call_tokens: of a reply that asks for a tool.
        result_tokens: what a tool's result adds to the next prompt.
        reply_tokens: of the last reply.
        reply_tokens_max: how long a reply may get as far as the engine knows.
        compact_at: a prompt that would be longer than so many tokens is compacted: it begins anew with
            `context_tokens`; 0: none is.
        tools: what is drawn from for each call.
        people: who answers in some rounds in place of tools; nobody, where it is not said.
        tools_in_text: tools are called in the text of replies, and no agent says that its run is over: nobody who
            passes answers on sees either.
        stragglers: runs of another length.
        fan_out: children of its runs.
        model: what they ask for.
    """

    name: Annotated[str, Meta(pattern="^[a-z0-9-]{1,40}$")]
    service_class: Literal["interactive", "batch"] = msgspec.field(name="class")
    count: Count = 0
    runs_per_min: Annotated[float, Meta(ge=0, le=100_000)] = 0.0
    burst: Annotated[int, Meta(ge=1, le=1000)] = 1
    callers: Annotated[int, Meta(ge=1, le=100_000)] = 1
    principal: Annotated[str, Meta(pattern="^[a-z0-9-]{0,40}$")] = ""
    context_tokens: Amount
    system_tokens: Count = 0
    tool_calls: Amount
    call_tokens: Amount
    result_tokens: Amount
    reply_tokens: Amount
    reply_tokens_max: Tokens = 256
    compact_at: Annotated[int, Meta(ge=0, le=1 << 30)] = 0
    tools: Annotated[tuple[ToolTimes, ...], Meta(min_length=1)]
    people: People | None = None
    tools_in_text: bool = False
    stragglers: Stragglers | None = None
    fan_out: FanOut | None = None
    model: Annotated[str, Meta(pattern="^[a-z0-9-]{1,40}$")] = SIMULATED


def ends_of(amount: Amount) -> Range:
    """Return the least and the most that may be drawn."""
    return (amount.least, amount.most) if isinstance(amount, Skewed) else amount


def contradictions_of(group: AgentGroup, engine: EngineFigures) -> list[str]:
    """Return what cannot be in a group of agents whose runs go to such engines."""
    found: list[str] = []
    rounds = ends_of(group.tool_calls)
    straggling = rounds if group.stragglers is None else ends_of(group.stragglers.tool_calls)
    context, call, result, reply = map(
        ends_of, (group.context_tokens, group.call_tokens, group.result_tokens, group.reply_tokens)
    )
    ranges = {
        "context_tokens": (context, 1),
        "tool_calls": (rounds, 0),
        "stragglers.tool_calls": (straggling, 0),
        "call_tokens": (call, 1),
        "result_tokens": (result, 1),
        "reply_tokens": (reply, 1),
    }
    found += [
        f"{key} must rise from at least {least}"
        for key, ((low, high), least) in ranges.items()
        if not least <= low <= high
    ]
    if max(call[1], reply[1]) > group.reply_tokens_max:
        found.append("replies may be longer than reply_tokens_max")
    first = group.system_tokens + context[1]
    if group.compact_at:
        if first > group.compact_at:
            found.append("a prompt may be longer than compact_at before anything is added to it")
        if group.fan_out is not None:
            found.append("agents that compact begin no children")
        longest = group.compact_at + group.reply_tokens_max
    else:
        calls = max(rounds[1], straggling[1])
        calls += max((fan.children for fan in group.fan_out.sizes), default=0) if group.fan_out is not None else 0
        longest = first + group.reply_tokens_max + calls * (call[1] + result[1])
    if longest > engine.kv_tokens:
        found.append(f"a run can grow to {longest} tokens, more than engine.kv_tokens holds")
    return found
