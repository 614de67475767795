"""Simulated agents: where each of their runs stands, and what becomes of its turns.

Knows nothing of engines or scheduling.
"""

from enum import Enum

from luftpause.core.model.ids import TurnId
from luftpause.testkit.engine_model.sequence import Request
from luftpause.testkit.sim.dice import Dice
from luftpause.testkit.sim.plans import Leg, RunPlan
from luftpause.testkit.sim.scenario import Faults


class SimRun:
    """A run under way.

    Attributes:
        stream: of its source.
        next_leg: which of its turns is next or open.
        context_tokens: its conversation so far, below what it shares with other runs.
        rewrites: how often its prompt was begun anew.
        prompt_tokens_before: of the last answered turn, 0 before the first and after a rewrite.
        home: replica of its last turn, None before the first.
        reprefilled_tokens: of prompts that had been computed before, and were computed again.
        moves: turns that went to another replica than the one before.
        turns: sent to an engine, failed ones included.
        turn_s: how long each answered turn took, from its offer on.
        parent: the run that began it, as it goes.
        service: what it took of the engines so far, weighted tokens.
        awaited: children that have to end before its next turn; 0 while it waits for none.
    """

    __slots__ = (
        "awaited",
        "begun_at",
        "context_tokens",
        "home",
        "moves",
        "next_leg",
        "parent",
        "plan",
        "prompt_tokens_before",
        "reprefilled_tokens",
        "rewrites",
        "run_id",
        "service",
        "service_class",
        "stream",
        "turn_s",
        "turns",
    )

    def __init__(self, plan: RunPlan, now: float, stream: int = 0, parent: "SimRun | None" = None) -> None:
        self.plan = plan
        self.run_id = plan.run
        self.service_class = plan.service_class
        self.stream = stream
        self.parent = parent
        self.awaited = 0
        self.service = 0.0
        self.begun_at = now
        self.next_leg = 0
        self.context_tokens = 0
        self.rewrites = 0
        self.prompt_tokens_before = 0
        self.home: int | None = None
        self.reprefilled_tokens = 0
        self.moves = 0
        self.turns = 0
        self.turn_s: list[float] = []

    @property
    def leg(self) -> Leg:
        """The turn that is next or open."""
        return self.plan.legs[self.next_leg]

    def answered(self, turn: "SimTurn", now: float) -> None:
        """Take in an answer to the open turn."""
        leg = self.leg
        self.turn_s.append(now - turn.offered_at)
        self.context_tokens += leg.new_tokens + leg.reply_tokens
        self.prompt_tokens_before = turn.prompt_tokens
        self.next_leg += 1
        if leg.away_s is not None and self.leg.rewritten:
            self.rewrites += 1
            self.context_tokens = self.prompt_tokens_before = 0


class TurnPhase(Enum):
    """How far a turn is. It goes forward, each step once, unless its engine has it no more and it is offered again."""

    OFFERED = "offered"
    SENT = "sent"
    ENDED = "ended"


_AFTER = {
    TurnPhase.OFFERED: (TurnPhase.SENT, TurnPhase.ENDED),
    TurnPhase.SENT: (TurnPhase.ENDED, TurnPhase.OFFERED),
    TurnPhase.ENDED: (),
}


class SimTurn:
    """One turn of an agent. A failed one is offered again as a new turn of the same leg, as an agent would.

    `spoke`: its answer has begun. `spoken_of`: whoever sent it wants to know when that has so many tokens; 0: not.
    `recalls`: how often its engine has given it back; each time it has another id. `priority`: what its engine was told
    of it, smaller first.
    """

    __slots__ = (
        "attempt",
        "cached_tokens",
        "key",
        "offered_at",
        "phase",
        "priority",
        "prompt_tokens",
        "recalls",
        "replica",
        "run",
        "spoke",
        "spoken_of",
        "turn_id",
    )

    def __init__(self, run: SimRun, key: int, attempt: int, now: float) -> None:
        self.run = run
        self.key = key
        self.turn_id = TurnId(f"sim.{key}")
        self.attempt = attempt
        self.recalls = 0
        self.spoke = False
        self.spoken_of = 0
        self.priority = 0
        self.offered_at = now
        self.phase = TurnPhase.OFFERED
        self.replica = -1
        self.prompt_tokens = run.plan.shared_tokens + run.context_tokens + run.leg.new_tokens
        self.cached_tokens = 0

    def given_back(self) -> None:
        """Wait for an engine again, under a new id."""
        self.step(TurnPhase.OFFERED)
        self.recalls += 1
        self.turn_id = TurnId(f"sim.{self.key}.{self.recalls}")

    def step(self, phase: TurnPhase) -> None:
        """Go on to a phase: to an engine, unless it is given back once, and to the end once."""
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
    run, plan = turn.run, turn.run.plan
    shared, own = plan.shared_tokens, turn.prompt_tokens - plan.shared_tokens
    segment = (f"{run.run_id} rewritten {run.rewrites}" if run.rewrites else run.run_id, own)
    prompt = ((plan.shared_name, shared), segment) if shared else (segment,)
    dies_after = None
    if fate is Fate.CUT:
        dies_after = Dice(f"cut {_name(turn, seed)}").whole(1, run.leg.reply_tokens)
    return Request(
        key=turn.key,
        prompt=prompt,
        reply_tokens=run.leg.reply_tokens,
        reply_tokens_max=plan.reply_tokens_max,
        priority=turn.priority,
        dies_after=dies_after,
        spoken_of=turn.spoken_of,
    )


def _name(turn: SimTurn, seed: int) -> str:
    run = turn.run
    return f"{seed} {run.run_id} {run.next_leg} {turn.attempt}"
