"""How well the engine model tells what llama.cpp's server does: fit it, then compare both on the workload w1-small.

    python -m benchmarks.fidelity [--minutes 2] [--seeds 3] [--json FILE]

The machine should be quiet. Wanted: run time p50 and runs per minute within 10 %.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec

from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.core.model.replicas import Endpoint
from luftpause.testkit.bench.fit import Probe, error_of, fitted
from luftpause.testkit.bench.machine import Machine, commit, describe_machine, machine_line, now
from luftpause.testkit.bench.over_http.doors import AbsentError
from luftpause.testkit.bench.over_http.engines import Pool, llama_engines
from luftpause.testkit.bench.over_http.measure import Window, measure_over_http
from luftpause.testkit.bench.simulated import Job
from luftpause.testkit.bench.tables import markdown
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.load.tasks import context_text
from luftpause.testkit.load.turns import Door, take_turn
from luftpause.testkit.sim.scenario import load_scenario
from luftpause.testkit.sim.simulate import simulate

SCENARIO = "w1-small"
ARM = "direct"
COMPARED = ("runs_per_min", "run_p50_s", "run_p99_s", "interactive_p50_s", "reprefilled_tokens_per_run")
GOAL = 0.10
STORED = Path(__file__).resolve().parent / "results" / "fidelity.json"


class Fidelity(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison: figures by name, measured and modelled, each the median over the seeds."""

    when: str
    commit: str
    machine: Machine
    seeds: int
    minutes: float
    engine: EngineFigures
    measured: dict[str, float | None]
    modelled: dict[str, float | None]


class Prober:
    """Asks one engine, and knows what each answer took."""

    def __init__(self, engines: HttpEngines, url: str, model: str) -> None:
        self._door = Door(engines, Endpoint(url=url), 300.0)
        self._url = url
        self._model = model
        self._number = 0

    async def probes(self) -> list[Probe]:
        """Return what prompts of several lengths and replies in batches of several sizes took."""
        await self._ask(16, 8)
        found = [await self._prompt(words) for words in (60, 120, 250, 400) for _ in range(2)]
        for beside in (1, 2, 4):
            for words in (20, 250):
                found += await self._replies(beside, words, 48)
        return found

    async def _prompt(self, words: int) -> Probe:
        first_s, _, tokens = await self._ask(words, 1)
        return Probe(seconds=first_s, steps=1, prefilled=tokens)

    async def _replies(self, beside: int, words: int, length: int) -> list[Probe]:
        answers = await asyncio.gather(*(self._ask(words, length) for _ in range(beside)))
        began = max(first_s for first_s, _, _ in answers)
        steps = length - 1
        probes = []
        for first_s, whole_s, tokens in answers:
            context = beside * (tokens + length / 2)
            if whole_s > began and first_s >= 0.5 * began:
                probes.append(Probe(seconds=whole_s - first_s, steps=steps, beside=beside, context=context))
        return probes

    async def _ask(self, words: int, length: int) -> tuple[float, float, int]:
        """Return seconds to the first token, to the last, and the tokens of the prompt that were computed."""
        self._number += 1
        text = " ".join(context_text(f"probe {self._number} {self._url}", words * 9).split()[:words])
        body: dict[str, object] = {
            "model": self._model,
            "messages": [{"role": "user", "content": text}],
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": length,
            "ignore_eos": True,
        }
        began = time.perf_counter()
        seen = (await take_turn(self._door, (), body)).seen()
        whole_s = time.perf_counter() - began
        return seen.first_token_s, whole_s, seen.prompt_tokens - seen.cached_tokens


async def _probes(pool: Pool) -> list[Probe]:
    engines = HttpEngines()
    try:
        asked = await asyncio.gather(*(Prober(engines, url, pool.model).probes() for url in pool.urls))
        return [probe for probes in asked for probe in probes]
    finally:
        await engines.close()


def fit() -> EngineFigures:
    """Return the figures of an engine of w1-small as it is here, with the others at work, as they will be."""
    scenario = load_scenario(SCENARIO)
    with tempfile.TemporaryDirectory() as name, llama_engines(scenario.replicas, Path(name)) as pool:
        return fitted(asyncio.run(_probes(pool)), scenario.engine)


def compare(seeds: Sequence[int], minutes: float) -> Fidelity:
    """Fit, then measure and simulate the same runs."""
    when, machine = now(), describe_machine()
    engine = fit()
    print(f"fitted: {engine}", file=sys.stderr)
    scenario = load_scenario(SCENARIO)
    window = Window(warmup_s=scenario.warmup_s, minutes=minutes, real=True)
    modelled_scenario = msgspec.structs.replace(scenario, engine=engine, minutes=minutes)
    measured, modelled = [], []
    for seed in seeds:
        measured.append(measure_over_http(Job(scenario=SCENARIO, arm=ARM, seed=seed), window).figures)
        modelled.append(asdict(simulate(modelled_scenario, ARM, seed).figures))
    return Fidelity(
        when=when,
        commit=commit(),
        machine=machine,
        seeds=len(seeds),
        minutes=minutes,
        engine=engine,
        measured={name: _middle([each[name] for each in measured]) for name in COMPARED},
        modelled={name: _middle([each[name] for each in modelled]) for name in COMPARED},
    )


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(statistics.median(known), 3) if known else None


def section(fidelity: Fidelity) -> str:
    """Return the section of the measurements, its heading included."""
    rows = []
    for name, measured in fidelity.measured.items():
        modelled = fidelity.modelled[name]
        error = error_of(modelled, measured)
        rows.append(
            (name, *("–" if value is None else f"{value:,.2f}" for value in (measured, modelled)), _said(error))
        )
    engine = fidelity.engine
    return f"""## The engine model against llama.cpp's server

The four times of the model are fitted to answers of one server, then both meet the runs of `{SCENARIO}` by round robin
over two of them. Wanted: an error of at most {GOAL:.0%} in runs per minute and run p50.

- Run: {fidelity.when}, commit {fidelity.commit}, {fidelity.seeds} seeds of {fidelity.minutes:g} min.
- Machine: {machine_line(fidelity.machine)}.
- Fitted: {engine.step_s * 1000:.2f} ms a step, {engine.decode_s * 1000:.2f} ms for each request that decodes,
  {engine.prefill_tps:,.0f} prompt tokens/s, {engine.context_s * 1e6:.3f} µs a token of context.

{markdown((("figure", "measured", "modelled", "error"), rows))}
"""


def _said(error: float | None) -> str:
    return "–" if error is None else f"{error:.1%}"


def load(path: Path) -> Fidelity:
    """Read a stored comparison."""
    return msgspec.json.decode(path.read_bytes(), type=Fidelity)


def main() -> int:
    """Compare, print, and store if asked to."""
    parser = argparse.ArgumentParser(description="Fit the engine model to llama.cpp's server, and compare.")
    parser.add_argument("--minutes", type=float, default=2.0, help="counted time of each seed")
    parser.add_argument("--seeds", type=int, default=3, help="repetitions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="store the comparison")
    options = parser.parse_args()
    try:
        found = compare(range(1, options.seeds + 1), options.minutes)
    except AbsentError as absent:
        print(f"fidelity: {absent}", file=sys.stderr)
        return 1
    print(section(found))
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
