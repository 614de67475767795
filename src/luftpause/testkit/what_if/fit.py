"""Engine figures from a log: how long turns took, against their tokens and what ran beside them. Pure.

Replicas with the same models are fitted together. A turn's answer took, from its first token to its last,

    steps * step_s + steps * turns answered beside it * decode_s + tokens prefilled meanwhile / prefill_tps

and a turn that was alone on its replica took one step and its own prompt until its first token. Least squares of the
relative error, with what is far off left out. What a log does not show keeps the figure that it is given.
"""

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from luftpause.core.model.ids import ModelName, ReplicaId
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.what_if.regression import nonnegative, robust
from luftpause.testkit.what_if.spans import Spans
from luftpause.testkit.what_if.trace import Probes, Trace, TracedRun, TracedTurn

ROWS_MIN: Final = 12
"""Times of so many turns at least, or nothing is fitted."""
STREAMED_SHARE_MIN: Final = 0.05
"""An answer that came within the last part of its turn's time was sent as a whole: its first token says nothing."""
PREFILLED_MIN: Final = 500
"""Prompt tokens in all the times together, or the prefill rate is not to be seen."""
SPREAD_MIN: Final = 1.0
"""Between few and many turns beside each other, or a step's own time and a turn's part cannot be told apart."""
FULL_PROBES_MIN: Final = 3
"""So many probes at least saw the same greatest number running, and others queued, before it is taken for a limit."""
ROOM: Final = 1.1
"""Memory beyond the most that was in use at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """What replicas with the same models are taken for.

    Attributes:
        fitted: names of figures that come from the log.
        rows: times that they were fitted to.
        error: of the middle one of these times, as a share of it; None where none was fitted.
    """

    models: tuple[ModelName, ...]
    replicas: tuple[ReplicaId, ...]
    figures: EngineFigures
    fitted: tuple[str, ...] = ()
    rows: int = 0
    error: float | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    """A time, and what it was spent on: steps, steps times turns, prompt tokens."""

    steps: float
    decodes: float
    prefilled: float
    seconds: float


def as_given(trace: Trace, figures: EngineFigures) -> tuple[Fitted, ...]:
    """Return the same figures for all replicas."""
    return tuple(
        Fitted(models=models, replicas=replicas, figures=figures) for models, replicas in _alike(trace.replicas).items()
    )


def fit(trace: Trace, base: EngineFigures, tokens_max: Mapping[ModelName, int]) -> tuple[Fitted, ...]:
    """Return figures for the replicas of a trace.

    Args:
        trace: what was recorded.
        base: the figures where the log shows none.
        tokens_max: what the longest turn with each model needs of an engine's memory.
    """
    busy = _busy(trace.runs)
    fits = []
    for models, replicas in _alike(trace.replicas).items():
        turns = [busy.get(replica, []) for replica in replicas]
        needed = max((tokens_max.get(model, 1) for model in models), default=1)
        found = _speed([row for each in turns for row in _rows(each)], base)
        sized, sizes = _sized(turns, [trace.probes.get(replica, Probes()) for replica in replicas], base, needed)
        fits.append(
            Fitted(
                models=models,
                replicas=replicas,
                figures=msgspec.structs.replace(sized, **found.figures),
                fitted=(*found.figures, *sizes),
                rows=found.rows,
                error=found.error,
            )
        )
    return tuple(fits)


def _alike(replicas: Mapping[ReplicaId, tuple[ModelName, ...]]) -> dict[tuple[ModelName, ...], tuple[ReplicaId, ...]]:
    found: dict[tuple[ModelName, ...], tuple[ReplicaId, ...]] = {}
    for replica, models in replicas.items():
        key = tuple(sorted(models))
        found[key] = (*found.get(key, ()), replica)
    return found


@dataclass(frozen=True, slots=True)
class _Busy:
    """A turn with usage on its replica. `prefilled`: tokens of its prompt that were computed for it."""

    turn: TracedTurn
    prompt: int
    reply: int
    prefilled: int

    @property
    def answers_from(self) -> float:
        """When its answer began: its first token, or its placement where that says nothing."""
        first_at = self.turn.first_at
        return first_at if first_at is not None and self.streamed else self.turn.placed_at

    @property
    def streamed(self) -> bool:
        """Whether its first token came well before its last."""
        turn = self.turn
        if turn.first_at is None:
            return False
        return turn.ended_at - turn.first_at > STREAMED_SHARE_MIN * (turn.ended_at - turn.placed_at)


def _busy(runs: Sequence[TracedRun]) -> dict[ReplicaId, list[_Busy]]:
    found: dict[ReplicaId, list[_Busy]] = defaultdict(list)
    for run in runs:
        before: TracedTurn | None = None
        for turn in run.turns:
            if turn.usage is not None:
                cached = turn.usage.cached_tokens
                if cached is None:  # what its run's last turn left there was probably found
                    stayed = before is not None and before.replica == turn.replica
                    cached = before.usage.prompt_tokens if stayed and before is not None and before.usage else 0
                prompt = turn.usage.prompt_tokens
                found[turn.replica].append(
                    _Busy(turn, prompt, turn.usage.completion_tokens, max(1, prompt - min(cached, prompt)))
                )
            before = turn
    return found


def _rows(busy: Sequence[_Busy]) -> list[_Row]:
    """Return the times of one replica's turns."""
    answering = Spans([(each.answers_from, each.turn.ended_at, 1.0) for each in busy])
    present = Spans([(each.turn.placed_at, each.turn.ended_at, 1.0) for each in busy])
    prefills = Spans([(each.answers_from, each.answers_from, float(each.prefilled)) for each in busy if each.streamed])
    rows = []
    for each in busy:
        placed_at, began_at, ended_at = each.turn.placed_at, each.answers_from, each.turn.ended_at
        if each.streamed and each.reply > 1 and ended_at > began_at:
            steps = each.reply - 1
            beside = answering.within(began_at, ended_at) / (ended_at - began_at)
            rows.append(_Row(steps, steps * beside, prefills.begun(began_at, ended_at), ended_at - began_at))
        if (
            each.streamed
            and began_at > placed_at
            and present.within(placed_at, began_at) <= 1.001 * (began_at - placed_at)
        ):
            rows.append(_Row(1, 0, each.prefilled, began_at - placed_at))
        alone = present.within(placed_at, ended_at) <= 1.001 * (ended_at - placed_at)
        if not each.streamed and ended_at > placed_at and alone:
            rows.append(_Row(each.reply, each.reply - 1, each.prefilled, ended_at - placed_at))
    return rows


@dataclass(frozen=True, slots=True)
class _Speed:
    figures: dict[str, float]
    rows: int
    error: float | None


def _speed(rows: Sequence[_Row], base: EngineFigures) -> _Speed:
    """Fit what a step, a turn beside others and a prompt token cost."""
    if len(rows) < ROWS_MIN:
        return _Speed({}, len(rows), None)
    beside = sorted(row.decodes / row.steps for row in rows if row.decodes)
    apart = bool(beside) and beside[len(beside) * 9 // 10] - beside[len(beside) // 10] >= SPREAD_MIN
    prefills = sum(row.prefilled for row in rows) >= PREFILLED_MIN
    columns = [[row.steps for row in rows], [row.decodes for row in rows]]
    if not apart:  # keep their proportion
        columns = [[base.step_s * row.steps + base.decode_s * row.decodes for row in rows]]
    taken = [0.0 if prefills else row.prefilled / base.prefill_tps for row in rows]
    if prefills:
        columns.append([row.prefilled for row in rows])
    # Relative errors: each time, and what it was spent on, is divided by it.
    shares = [[column[at] / row.seconds for column in columns] for at, row in enumerate(rows)]
    targets = [max(0.0, 1.0 - taken[at] / row.seconds) for at, row in enumerate(rows)]
    found, error = robust(shares, targets, nonnegative)
    step_s, decode_s = found[:2] if apart else (found[0] * base.step_s, found[0] * base.decode_s)
    figures = {"step_s": max(1e-6, step_s), "decode_s": decode_s}
    if prefills and found[-1] > 0:
        figures["prefill_tps"] = 1 / found[-1]
    return _Speed({name: _short(value) for name, value in figures.items()}, len(rows), _short(error))


def _sized(
    turns: Sequence[Sequence[_Busy]], probes: Sequence[Probes], base: EngineFigures, needed: int
) -> tuple[EngineFigures, tuple[str, ...]]:
    """Return the base, at least as large as what was seen, and the names of what was changed."""
    used = max((Spans([(e.answers_from, e.turn.ended_at, e.prompt) for e in each]).most() for each in turns), default=0)
    changed: dict[str, int] = {}
    kv_tokens = max(needed, int(ROOM * used))
    if kv_tokens > base.kv_tokens:
        changed["kv_tokens"] = kv_tokens
    full = [each.running_max for each in probes if each.full >= FULL_PROBES_MIN]
    if full and 0 < statistics.median(full) < base.max_running:
        changed["max_running"] = int(statistics.median(full))
    return msgspec.structs.replace(base, **changed), tuple(changed)


def _short(value: float) -> float:
    """Return four digits of a figure: no fit is better than that."""
    return float(f"{value:.4g}")
