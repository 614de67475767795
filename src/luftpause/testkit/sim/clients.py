"""Simulated agents: what each of their runs contains, and where it stands.

A run's contents are drawn from the seed, its group and its number alone, so the same run meets the same tools and
lengths whatever arm serves it. Knows nothing of engines or scheduling.
"""

from dataclasses import dataclass
from enum import Enum

from luftpause.core.model.ids import CallerId, RunId, TurnId
from luftpause.core.model.turns import ServiceClass
from luftpause.testkit.engine_model.sequence import Request
from luftpause.testkit.sim.dice import Dice
from luftpause.testkit.sim.scenario import AgentGroup, Faults, ToolTimes


@dataclass(frozen=True, slots=True)
class Leg:
    """One turn of a run: what the prompt gains before it, what it replies, and the tool that follows.

    `tool_s` is None for the last turn.
    """

    new_tokens: int
    reply_tokens: int
    tool_s: float | None


def draw_legs(group: AgentGroup, seed: int, number: int) -> tuple[Leg, ...]:
    """Return the turns of a group's run."""
    dice = Dice(f"run {seed} {group.name} {number}")
    rounds = dice.whole(*group.tool_calls)
    legs = []
    new_tokens = dice.whole(*group.context_tokens)
    for _ in range(rounds):
        legs.append(Leg(new_tokens, dice.whole(*group.call_tokens), _tool_s(group.tools, dice)))
        new_tokens = dice.whole(*group.result_tokens)
    legs.append(Leg(new_tokens, dice.whole(*group.reply_tokens), None))
    return tuple(legs)


def _tool_s(tools: tuple[ToolTimes, ...], dice: Dice) -> float:
    left = dice.unit() * sum(tool.share for tool in tools)
    chosen = tools[-1]
    for tool in tools:
        left -= tool.share
        if left < 0:
            chosen = tool
            break
    return dice.log_normal(chosen.median_s, chosen.sigma)


class SimRun:
    """A run under way.

    Attributes:
        next_leg: which of its turns is next or open.
        context_tokens: its conversation so far, below the system prompt.
        prompt_tokens_before: of the last answered turn, 0 before the first.
        home: replica of its last turn, None before the first.
        reprefilled_tokens: of prompts that had been computed before, and were computed again.
        moves: turns that went to another replica than the one before.
    """

    __slots__ = (
        "begun_at",
        "caller",
        "context_tokens",
        "group",
        "home",
        "legs",
        "moves",
        "next_leg",
        "number",
        "prompt_tokens_before",
        "reprefilled_tokens",
        "run_id",
        "service_class",
        "turns",
    )

    def __init__(self, group: AgentGroup, seed: int, number: int, now: float) -> None:
        self.group = group
        self.number = number
        self.run_id = RunId(f"{group.name}-{number}")
        self.service_class = ServiceClass(group.service_class)
        self.caller = CallerId(f"{group.name}-{number % group.callers}")
        self.legs = draw_legs(group, seed, number)
        self.begun_at = now
        self.next_leg = 0
        self.context_tokens = 0
        self.prompt_tokens_before = 0
        self.home: int | None = None
        self.reprefilled_tokens = 0
        self.moves = 0
        self.turns = 0

    @property
    def leg(self) -> Leg:
        """The turn that is next or open."""
        return self.legs[self.next_leg]

    def answered(self, prompt_tokens: int) -> None:
        """Take in an answer to the open turn."""
        leg = self.leg
        self.context_tokens += leg.new_tokens + leg.reply_tokens
        self.prompt_tokens_before = prompt_tokens
        self.next_leg += 1


class TurnPhase(Enum):
    """How far a turn is. It only goes forward, and each step is taken once."""

    OFFERED = "offered"
    SENT = "sent"
    ENDED = "ended"


_AFTER = {
    TurnPhase.OFFERED: (TurnPhase.SENT, TurnPhase.ENDED),
    TurnPhase.SENT: (TurnPhase.ENDED,),
    TurnPhase.ENDED: (),
}


class SimTurn:
    """One offer of a turn. A failed one is offered again as a new turn of the same leg, as an agent would."""

    __slots__ = (
        "attempt",
        "cached_tokens",
        "key",
        "offered_at",
        "phase",
        "prompt_tokens",
        "replica",
        "run",
        "turn_id",
    )

    def __init__(self, run: SimRun, key: int, attempt: int, now: float) -> None:
        self.run = run
        self.key = key
        self.turn_id = TurnId(f"sim.{key}")
        self.attempt = attempt
        self.offered_at = now
        self.phase = TurnPhase.OFFERED
        self.replica = -1
        self.prompt_tokens = run.group.system_tokens + run.context_tokens + run.leg.new_tokens
        self.cached_tokens = 0

    def step(self, phase: TurnPhase) -> None:
        """Go on to a phase: to an engine once, and to the end once, by way of an engine or not."""
        assert phase in _AFTER[self.phase], (
            f"turn {self.turn_id} of run {self.run.run_id} was {self.phase.value} and is {phase.value} again"
        )
        self.phase = phase


class Fate(Enum):
    """What becomes of a turn at its engine."""

    ANSWERED = "answered"
    REFUSED = "refused"
    CUT = "cut"


def draw_fate(turn: SimTurn, seed: int, faults: Faults) -> Fate:
    """Return what becomes of a turn; the same for the same attempt at the same turn, whichever engine it meets."""
    if not faults.refused and not faults.cut:
        return Fate.ANSWERED
    drawn = Dice(f"fate {_name(turn, seed)}").unit()
    if drawn < faults.refused:
        return Fate.REFUSED
    return Fate.CUT if drawn < faults.refused + faults.cut else Fate.ANSWERED


def request_of(turn: SimTurn, seed: int, fate: Fate) -> Request:
    """Return the turn as an engine sees it."""
    run, group = turn.run, turn.run.group
    system, own = group.system_tokens, turn.prompt_tokens - group.system_tokens
    prompt = ((f"system {group.name}", system), (run.run_id, own)) if system else ((run.run_id, own),)
    dies_after = None
    if fate is Fate.CUT:
        dies_after = Dice(f"cut {_name(turn, seed)}").whole(1, run.leg.reply_tokens)
    return Request(
        key=turn.key,
        prompt=prompt,
        reply_tokens=run.leg.reply_tokens,
        reply_tokens_max=group.reply_tokens_max,
        priority=0 if run.service_class is ServiceClass.INTERACTIVE else 1,
        dies_after=dies_after,
    )


def _name(turn: SimTurn, seed: int) -> str:
    run = turn.run
    return f"{seed} {run.group.name} {run.number} {run.next_leg} {turn.attempt}"
