"""What a simulated run contains, whoever serves it, and how a scenario's agents draw it.

A run's contents are drawn from the seed, its group and its number alone, so the same run meets the same tools and
lengths whatever arm serves it. Knows nothing of engines or scheduling.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, CallerId, ModelName, PrincipalId, RunId, ToolName
from luftpause.core.model.turns import ServiceClass
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.sim.agent_groups import SIMULATED, AgentGroup, Amount, FanOut, Skewed
from luftpause.testkit.sim.dice import Dice

NO_TOOL: Final = ToolName("")
AWAITS: Final = ToolName("await")
"""What a run is away on while it waits for its children."""
MODEL: Final = ModelName(SIMULATED)
"""The model of everything that a scenario draws."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One turn of a run: what the prompt gains before it, what it replies, and how long its agent is away then.

    Attributes:
        new_tokens: below 0 when the agent took away more than it added.
        away_s: until the next turn is offered; None for the last turn. After children: once enough of them have ended.
        paused: the reply asks for tools, and the agent is away to run them.
        tool: what the reply asks for; empty where it asks for none, or nobody knows.
        rewritten: the prompt shares nothing with the one before, but for what all runs share.
        children: runs that begin when this turn is answered; the next turn waits for them.
        enough: so many of the children have to end.
    """

    new_tokens: int
    reply_tokens: int
    away_s: float | None
    paused: bool
    rewritten: bool = False
    tool: ToolName = NO_TOOL
    children: tuple["RunPlan", ...] = ()
    enough: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """A run before it begins.

    Attributes:
        shared_name: of the beginning that its prompts have in common with other runs' prompts.
        shared_tokens: how long that is; 0 for none.
        reply_tokens_max: how long a reply may get as far as the engine knows.
        says_end: its agent says when it is over; else the scheduler must find out.
        tools_in_text: who passes its answers on sees no tool calls in them.
        parent: the run that began it.
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
    tools_in_text: bool = False
    parent: RunId | None = None


def alone_s(plan: RunPlan, engine: EngineFigures) -> float:
    """Return how long a run takes with an engine that has nothing else to do and forgets nothing, seconds.

    Nothing is said of what the children take that it waits for.
    """
    seconds, context = 0.0, 0
    for leg in plan.legs:
        fresh = leg.new_tokens + (0 if context else plan.shared_tokens)
        context += max(0, leg.new_tokens) + leg.reply_tokens
        seconds += max(0, fresh) / engine.prefill_tps + leg.reply_tokens * (engine.step_s + engine.decode_s)
        seconds += leg.away_s or 0.0
    return seconds


Groups = Mapping[str, AgentGroup]
"""A scenario's groups by their names."""


def draw_plan(group: AgentGroup, seed: int, number: int, groups: Groups | None = None) -> RunPlan:
    """Return a group's run. `groups`: where its children are found; not needed by runs without any."""
    name = f"{group.name}-{number}"
    caller = CallerId(f"{group.name}-{number % group.callers}")
    principal = PrincipalId(group.principal) if group.principal else ANONYMOUS_PRINCIPAL
    return _Drawing(seed, groups or {}, caller, principal).plan(group, name, None)


@dataclass(frozen=True, slots=True)
class _Drawing:
    """What a whole tree of runs has in common."""

    seed: int
    groups: Groups
    caller: CallerId
    principal: PrincipalId

    def plan(self, group: AgentGroup, name: str, parent: RunId | None) -> RunPlan:
        """Return a run and all that is below it."""
        run = RunId(name)
        dice = Dice(f"run {self.seed} {group.name} {name.removeprefix(group.name + '-')}")
        legs = _draw_legs(group, dice)
        if group.fan_out is not None:
            legs = self._with_children(group.fan_out, group, run, legs)
        return RunPlan(
            run=run,
            service_class=ServiceClass(group.service_class),
            caller=self.caller,
            legs=legs,
            reply_tokens_max=group.reply_tokens_max,
            model=ModelName(group.model),
            principal=self.principal,
            shared_name=f"system {group.name}",
            shared_tokens=group.system_tokens,
            says_end=not group.tools_in_text,
            tools_in_text=group.tools_in_text,
            parent=parent,
        )

    def _with_children(self, fan_out: FanOut, group: AgentGroup, run: RunId, legs: tuple[Leg, ...]) -> tuple[Leg, ...]:
        """Return the legs with one ahead of the last that begins children, whose results are in the last prompt."""
        dice = Dice(f"children {self.seed} {run}")
        size = fan_out.sizes[_chosen([fan.share for fan in fan_out.sizes], dice)].children
        kind = self.groups[fan_out.group]
        children = tuple(self.plan(kind, f"{run}.{number}", run) for number in range(size))
        *first, last = legs
        call_tokens = _amount(group.call_tokens, dice)
        results = sum(_amount(group.result_tokens, dice) for _ in children)
        enough = 1 if fan_out.awaits == "any" else size
        begins = Leg(last.new_tokens, call_tokens, 0.0, paused=True, tool=AWAITS, children=children, enough=enough)
        return (*first, begins, replace(last, new_tokens=results))


def _draw_legs(group: AgentGroup, dice: Dice) -> tuple[Leg, ...]:
    rounds = _amount(_rounds(group, dice), dice)
    legs = []
    new_tokens, prompt_tokens, rewritten = _amount(group.context_tokens, dice), group.system_tokens, False
    for _ in range(rounds):
        reply_tokens = _amount(group.call_tokens, dice)
        tool, away_s = _away(group, dice)
        legs.append(Leg(new_tokens, reply_tokens, away_s, paused=bool(tool), rewritten=rewritten, tool=tool))
        prompt_tokens += new_tokens + reply_tokens
        new_tokens = _amount(group.result_tokens, dice)
        rewritten = 0 < group.compact_at < prompt_tokens + new_tokens
        if rewritten:
            new_tokens, prompt_tokens = _amount(group.context_tokens, dice), group.system_tokens
    legs.append(Leg(new_tokens, _amount(group.reply_tokens, dice), None, paused=False, rewritten=rewritten))
    return tuple(legs)


def _rounds(group: AgentGroup, dice: Dice) -> Amount:
    stragglers = group.stragglers
    return stragglers.tool_calls if stragglers is not None and dice.unit() < stragglers.share else group.tool_calls


def _amount(amount: Amount, dice: Dice) -> int:
    """Draw a whole number."""
    if isinstance(amount, Skewed):
        return min(max(amount.least, round(dice.log_normal(amount.median, amount.sigma))), amount.most)
    return dice.whole(*amount)


def _away(group: AgentGroup, dice: Dice) -> tuple[ToolName, float]:
    """Draw which tool is called, NO_TOOL where a person is asked, and how long that takes, seconds."""
    people = group.people
    if people is not None and dice.unit() < people.share:
        return NO_TOOL, min(people.most_s, dice.log_normal(people.median_s, people.sigma))
    chosen = _chosen([tool.share for tool in group.tools], dice)
    times = group.tools[chosen]
    return ToolName(times.name or f"{group.name}-{chosen}"), min(
        times.most_s, dice.log_normal(times.median_s, times.sigma)
    )


def _chosen(shares: Sequence[float], dice: Dice) -> int:
    """Draw one by its weight."""
    left = dice.unit() * sum(shares)
    for number, share in enumerate(shares):
        left -= share
        if left < 0:
            return number
    return len(shares) - 1
