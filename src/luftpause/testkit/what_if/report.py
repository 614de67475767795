"""The answer as JSON, as rows of a table, and as the sentences that say what it is worth. Pure; holds no clock."""

import json
from dataclasses import asdict
from typing import Final

import msgspec

from luftpause.testkit.what_if.asking import Answer
from luftpause.testkit.what_if.figures import Column
from luftpause.testkit.what_if.fit import Fitted

ROWS: Final = {
    "interactive_runs_per_min": ("interactive runs/min", 1),
    "interactive_p50_s": ("interactive run p50 s", 2),
    "interactive_p99_s": ("interactive run p99 s", 2),
    "interactive_turn_p50_s": ("interactive turn p50 s", 2),
    "interactive_turn_p99_s": ("interactive turn p99 s", 2),
    "batch_runs_per_min": ("batch runs/min", 1),
    "batch_p50_s": ("batch run p50 s", 2),
    "batch_p99_s": ("batch run p99 s", 2),
    "batch_turn_p50_s": ("batch turn p50 s", 2),
    "batch_turn_p99_s": ("batch turn p99 s", 2),
    "held_turns": ("turns held", 0),
    "reprefilled_tokens_per_run": ("re-prefilled tokens/run", 0),
}
"""Which figures the table shows, under which name, with how many decimals."""

LIMITS: Final = (
    "runs begin when they began and agents are away as long as they were: a better policy shows in times more than in "
    "runs/min; replicas are all there and healthy throughout; failures are left out"
)


def report_json(answer: Answer, seed: int) -> str:
    """Return everything as JSON: the same log and seed give the same bytes."""
    report = {
        "estimate": True,
        "policy": answer.policy,
        "recorded_policy": answer.recorded_policy,
        "seed": seed,
        "trace": _trace(answer),
        "engines": [_engine(engine) for engine in answer.engines],
        "run_time_error": answer.error,
        "columns": {name: asdict(column) for name, column in answer.columns.items()},
    }
    return json.dumps(report, indent=2) + "\n"


def headings(answer: Answer) -> tuple[str, ...]:
    """Return the headings of the table."""
    names = {
        "recorded": "recorded",
        "as recorded": f"as recorded, simulated ({answer.recorded_policy})",
        "what-if": f"what-if, simulated ({answer.policy})",
    }
    return ("", *(names[name] for name in answer.columns))


def rows(answer: Answer) -> list[tuple[str, ...]]:
    """Return a row for each figure that any column has, but for a class that no run has."""
    columns = tuple(answer.columns.values())
    return [
        (heading, *(_cell(column, name, decimals) for column in columns))
        for name, (heading, decimals) in ROWS.items()
        if any(getattr(column, name) is not None for column in columns) and not _absent(name, columns)
    ]


def sentences(answer: Answer, engine_from: str) -> list[str]:
    """Return what the table rests on. `engine_from`: where figures come from that are not the log's."""
    trace = _trace(answer)
    found = [
        f"An estimate, not a replay: what the log recorded, {answer.policy} on modelled engines.",
        f"  load     {trace['runs']} runs ({trace['whole_runs']} whole, {trace['begun_before']} begun before the log, "
        f"{trace['unfinished']} unfinished at its end), {trace['turns']} turns, {trace['minutes']:.1f} min",
    ]
    if answer.estimated_turns:
        found.append(f"  tokens   {answer.estimated_turns} turns report none: estimated from bytes and other turns")
    if answer.trace.left_out:
        left_out = ", ".join(f"{count} {what}" for what, count in sorted(answer.trace.left_out.items()))
        found.append(f"  left out {left_out}")
    found += [f"  engine   {_engine_words(engine, engine_from)}" for engine in answer.engines]
    if answer.error is None:
        said = f"the policy of the log, {', '.join(answer.trace.policies)}, cannot be simulated: the error is unknown"
    else:
        said = f"simulated as recorded ({answer.recorded_policy}), the middle run's time is off by {answer.error:.1%}"
    found += [f"  error    {said}", f"  limits   {LIMITS}"]
    late = [f"{name} {column.unfinished_runs}" for name, column in answer.columns.items() if column.unfinished_runs]
    if late:
        found.append(f"  never    runs did not end even a day after the log: {', '.join(late)}")
    return found


def _trace(answer: Answer) -> dict[str, object]:
    return {
        "runs": len(answer.runs),
        "whole_runs": sum(run.whole for run in answer.runs),
        "begun_before": sum(run.begun_before for run in answer.runs),
        "unfinished": sum(run.unfinished for run in answer.runs),
        "turns": sum(len(run.turns) for run in answer.runs),
        "estimated_turns": answer.estimated_turns,
        "minutes": round(answer.trace.until / 60, 4),
        "left_out": dict(sorted(answer.trace.left_out.items())),
    }


def _engine(engine: Fitted) -> dict[str, object]:
    return {
        "models": list(engine.models),
        "replicas": list(engine.replicas),
        "figures": msgspec.to_builtins(engine.figures),
        "fitted": list(engine.fitted),
        "rows": engine.rows,
        "error": engine.error,
    }


def _engine_words(engine: Fitted, engine_from: str) -> str:
    figures = engine.figures
    said = (
        f"{len(engine.replicas)} × {', '.join(engine.models)}: {figures.step_s * 1e3:.4g} ms a step "
        f"+ {figures.decode_s * 1e3:.4g} ms a turn, prefill {figures.prefill_tps:,.0f} tokens/s, "
        f"memory {figures.kv_tokens:,} tokens, {figures.max_running} at once"
    )
    if not engine.fitted:
        return f"{said}; all from {engine_from}"
    error = "" if engine.error is None else f" to {engine.rows} times, the middle one off by {engine.error:.1%}"
    return f"{said}; from the log: {', '.join(engine.fitted)}{error}; the rest from {engine_from}"


def _absent(name: str, columns: tuple[Column, ...]) -> bool:
    """Say whether a figure is one of a class that has no runs at all."""
    for service_class in ("interactive", "batch"):
        if name.startswith(service_class):
            return all(getattr(column, f"{service_class}_turn_p50_s") is None for column in columns)
    return False


def _cell(column: Column, name: str, decimals: int) -> str:
    value = getattr(column, name)
    return "-" if value is None else f"{value:,.{decimals}f}"
