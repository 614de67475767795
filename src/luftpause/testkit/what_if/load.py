"""A trace as a load for the simulator: its runs with their tokens, beginning when they began.

Tokens are the engine's own counts where it gave them. Where it did not, a prompt is estimated from its bytes by the
ratio of the other turns with its model, and a reply is drawn from theirs.
"""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from luftpause.core.model.ids import CallerId, ModelName, PrincipalId
from luftpause.testkit.sim.dice import Dice
from luftpause.testkit.sim.plans import Leg, RunPlan
from luftpause.testkit.what_if.trace import Trace, TracedRun, TracedTurn

REPLY_SHARE: Final = 0.95
"""What engines reserve for a reply is not in a log: as long as all but the longest replies, or its run's longest."""
SHARED_RUNS_MIN: Final = 3
"""So many runs of a caller must have found something cached in their first turn before that is taken for shared."""

_Sharing = tuple[ModelName, PrincipalId, CallerId]


class NoLoadError(Exception):
    """There is nothing to simulate. Its text says why, and the way out."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """A run, and when it begins."""

    at: float
    plan: RunPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is simulated. `estimated`: turns without usage."""

    beginnings: tuple[Beginning, ...]
    estimated: int

    def tokens_max(self, model: ModelName) -> int:
        """Return what the longest turn with a model may need of an engine's memory."""
        return max((_tokens_max(each.plan) for each in self.beginnings if each.plan.model == model), default=1)


class Planned:
    """A load as the one stream of a world's source."""

    def __init__(self, beginnings: Sequence[Beginning]) -> None:
        self._beginnings = beginnings
        self._next = 0

    def starts(self) -> Sequence[tuple[float, int]]:
        """Return when the first run begins."""
        return [(each.at, 0) for each in self._beginnings[:1]]

    def next_at(self, stream: int, now: float) -> float | None:
        """Return when the run after the one that begins now does."""
        following = self._next + 1
        return self._beginnings[following].at if following < len(self._beginnings) else None

    def begin(self, stream: int) -> RunPlan:
        """Return the next run."""
        self._next += 1
        return self._beginnings[self._next - 1].plan

    def follow(self, stream: int) -> RunPlan | None:
        """A recorded run waits for no other."""
        return None


def load_of(trace: Trace, seed: int) -> Load:
    """Return a trace's load. Runs whose model no replica serves are no part of it.

    Args:
        trace: what was recorded.
        seed: what unknown replies are drawn from.

    Raises:
        NoLoadError: it has no run that could be simulated.
    """
    served = {model for models in trace.replicas.values() for model in models}
    runs = [run for run in trace.runs if run.model in served]
    if not runs:
        raise NoLoadError("no run in it was answered: record for longer, while agents are at work")
    known = {model: _Known([run for run in runs if run.model == model]) for model in {run.model for run in runs}}
    overall = _Known(runs)
    if not overall.replies:
        raise NoLoadError("no turn in it has token counts: it needs at least one engine that reports usage")
    shared = _shared(runs)
    beginnings = tuple(
        Beginning(
            max(0.0, run.turns[0].arrived_at),
            _plan(run, known[run.model] if known[run.model].replies else overall, shared.get(_sharing(run), 0), seed),
        )
        for run in runs
    )
    return Load(beginnings=beginnings, estimated=sum(turn.usage is None for run in runs for turn in run.turns))


class _Known:
    """What the turns with usage teach about those without."""

    def __init__(self, runs: Sequence[TracedRun]) -> None:
        turns = [turn for run in runs for turn in run.turns]
        usages = [(turn.prompt_bytes, turn.usage) for turn in turns if turn.usage is not None]
        self.replies = sorted(usage.completion_tokens for _, usage in usages)
        prompt_bytes = sum(size for size, _ in usages)
        self.tokens_per_byte = sum(usage.prompt_tokens for size, usage in usages if size) / max(1, prompt_bytes)
        self.reply_usual_max = self.replies[int(REPLY_SHARE * (len(self.replies) - 1))] if self.replies else 1

    def tokens(self, turn: TracedTurn, name: str) -> tuple[int, int]:
        """Return tokens of a turn's prompt and reply, at least one each."""
        if turn.usage is not None:
            return max(1, turn.usage.prompt_tokens), max(1, turn.usage.completion_tokens)
        reply = self.replies[Dice(name).whole(0, len(self.replies) - 1)]
        return max(1, round(turn.prompt_bytes * self.tokens_per_byte)), max(1, reply)


def _plan(run: TracedRun, known: _Known, shared: int, seed: int) -> RunPlan:
    tokens = [known.tokens(turn, f"reply {seed} {run.run} {number}") for number, turn in enumerate(run.turns)]
    if min(prompt for prompt, _ in tokens) <= shared:
        shared = 0
    return RunPlan(
        run=run.run,
        service_class=run.service_class,
        caller=run.caller,
        principal=run.principal,
        model=run.model,
        legs=_legs(run.turns, tokens, shared),
        reply_tokens_max=max(known.reply_usual_max, *(reply for _, reply in tokens)),
        shared_name=f"shared {run.model} {run.principal} {run.caller}",
        shared_tokens=shared,
        says_end=run.told_end,
    )


def _legs(turns: Sequence[TracedTurn], tokens: Sequence[tuple[int, int]], shared: int) -> tuple[Leg, ...]:
    legs = []
    before = context = shared
    for number, (turn, (prompt, reply)) in enumerate(zip(turns, tokens, strict=True)):
        rewritten = number > 0 and prompt < before
        away_s = turns[number + 1].arrived_at - turn.ended_at if number + 1 < len(turns) else None
        legs.append(
            Leg(
                new_tokens=prompt - (shared if rewritten else context),
                reply_tokens=reply,
                away_s=None if away_s is None else max(0.0, away_s),
                paused=turn.paused,
                rewritten=rewritten,
            )
        )
        before, context = prompt, prompt + reply
    return tuple(legs)


def _tokens_max(plan: RunPlan) -> int:
    longest = prompt = plan.shared_tokens
    for leg in plan.legs:
        prompt = (plan.shared_tokens if leg.rewritten else prompt) + leg.new_tokens
        longest = max(longest, prompt)
        prompt += leg.reply_tokens
    return longest + plan.reply_tokens_max


def _sharing(run: TracedRun) -> _Sharing:
    return run.model, run.principal, run.caller


def _shared(runs: Sequence[TracedRun]) -> dict[_Sharing, int]:
    """Return how much of their prompts each caller's runs have in common, as far as first turns found it cached."""
    found: dict[_Sharing, list[int]] = defaultdict(list)
    for run in runs:
        usage = run.turns[0].usage
        if usage is not None and usage.cached_tokens and not run.begun_before:
            found[_sharing(run)].append(usage.cached_tokens)
    return {
        sharing: int(statistics.median(cached)) for sharing, cached in found.items() if len(cached) >= SHARED_RUNS_MIN
    }
