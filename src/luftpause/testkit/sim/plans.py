"""What a simulated run contains, whoever serves it, and how a scenario's agents draw it.

A run's contents are drawn from the seed, its group and its number alone, so the same run meets the same tools and
lengths whatever arm serves it. Knows nothing of engines or scheduling.
"""

from dataclasses import dataclass
from typing import Final

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, CallerId, ModelName, PrincipalId, RunId, ToolName
from luftpause.core.model.turns import ServiceClass
from luftpause.testkit.sim.dice import Dice
from luftpause.testkit.sim.scenario import SIMULATED, AgentGroup

NO_TOOL: Final = ToolName("")
MODEL: Final = ModelName(SIMULATED)
"""The model of everything that a scenario draws."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One turn of a run: what the prompt gains before it, what it replies, and how long its agent is away then.

    Attributes:
        new_tokens: below 0 when the agent took away more than it added.
        away_s: until the next turn is offered; None for the last turn.
        paused: the reply asks for tools, and the agent is away to run them.
        tool: what the reply asks for; empty where it asks for none, or nobody knows.
        rewritten: the prompt shares nothing with the one before, but for what all runs share.
    """

    new_tokens: int
    reply_tokens: int
    away_s: float | None
    paused: bool
    rewritten: bool = False
    tool: ToolName = NO_TOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """A run before it begins.

    Attributes:
        shared_name: of the beginning that its prompts have in common with other runs' prompts.
        shared_tokens: how long that is; 0 for none.
        reply_tokens_max: how long a reply may get as far as the engine knows.
        says_end: its agent says when it is over; else the scheduler must find out.
    """

    run: RunId
    service_class: ServiceClass
    caller: CallerId
    legs: tuple[Leg, ...]
    reply_tokens_max: int
    model: ModelName = MODEL
    principal: PrincipalId = ANONYMOUS_PRINCIPAL
    shared_name: str = ""
    shared_tokens: int = 0
    says_end: bool = True


def draw_plan(group: AgentGroup, seed: int, number: int) -> RunPlan:
    """Return a group's run."""
    return RunPlan(
        run=RunId(f"{group.name}-{number}"),
        service_class=ServiceClass(group.service_class),
        caller=CallerId(f"{group.name}-{number % group.callers}"),
        legs=_draw_legs(group, seed, number),
        reply_tokens_max=group.reply_tokens_max,
        model=ModelName(group.model),
        shared_name=f"system {group.name}",
        shared_tokens=group.system_tokens,
    )


def _draw_legs(group: AgentGroup, seed: int, number: int) -> tuple[Leg, ...]:
    dice = Dice(f"run {seed} {group.name} {number}")
    rounds = dice.whole(*group.tool_calls)
    legs = []
    new_tokens = dice.whole(*group.context_tokens)
    for _ in range(rounds):
        reply_tokens = dice.whole(*group.call_tokens)
        tool, away_s = _tool(group, dice)
        legs.append(Leg(new_tokens, reply_tokens, away_s, paused=True, tool=tool))
        new_tokens = dice.whole(*group.result_tokens)
    legs.append(Leg(new_tokens, dice.whole(*group.reply_tokens), None, paused=False))
    return tuple(legs)


def _tool(group: AgentGroup, dice: Dice) -> tuple[ToolName, float]:
    """Draw which tool is called, and how long that takes, seconds."""
    left = dice.unit() * sum(tool.share for tool in group.tools)
    chosen = len(group.tools) - 1
    for number, tool in enumerate(group.tools):
        left -= tool.share
        if left < 0:
            chosen = number
            break
    times = group.tools[chosen]
    return ToolName(f"{group.name}-{chosen}"), dice.log_normal(times.median_s, times.sigma)
