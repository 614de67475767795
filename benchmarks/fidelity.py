"""How well the engine model tells what llama.cpp's server does: fit it, then compare both on the workload w1-small.

    python -m benchmarks.fidelity [--minutes 2] [--seeds 3] [--json FILE]

The machine should be quiet; it takes some three minutes a seed. Wanted: run time p50 and runs per minute within 10 %.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.core.model.replicas import Endpoint
from luftpause.testkit.bench.fit import Probe, error_of, fitted
from luftpause.testkit.bench.machine import Machine, commit, describe_machine, machine_line, now
from luftpause.testkit.bench.over_http.doors import AbsentError
from luftpause.testkit.bench.over_http.engines import Pool, llama_engines
from luftpause.testkit.bench.over_http.measure import measure_over_http
from luftpause.testkit.bench.simulated import Job
from luftpause.testkit.bench.tables import markdown
from luftpause.testkit.bench.windows import Window
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.load.tasks import context_text
from luftpause.testkit.load.turns import Door, take_turn
from luftpause.testkit.sim.scenario import Scenario, load_scenario
from luftpause.testkit.sim.simulate import simulate

SCENARIO = "w1-small"
ARM = "direct"
COMPARED = ("runs_per_min", "run_p50_s", "run_p99_s", "interactive_p50_s", "reprefilled_tokens_per_run")
GOAL = 0.10
Figured = Mapping[str, float | None]
"""Figures by name."""


class Fidelity(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison.

    Attributes:
        engine: as the probes of all rounds make it.
        residual: how far that is off a probe, in the middle, as a share of what it took.
        measured: figures by name, the median over the seeds; so are those modelled.
        errors: how far a seed's own model is off its own measurement, the median over the seeds.
    """

    when: str
    commit: str
    machine: Machine
    seeds: int
    minutes: float
    engine: EngineFigures
    residual: float
    measured: dict[str, float | None]
    modelled: dict[str, float | None]
    errors: dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of one question: seconds to the first and to the last token, prompt tokens computed and in all."""

    first_s: float
    whole_s: float
    computed: int
    prompt: int

    @property
    def prefill(self) -> Probe:
        """The step that computed the prompt."""
        before = self.computed * (self.prompt - self.computed / 2)
        return Probe(seconds=self.first_s, steps=1, prefilled=self.computed, before=before, prompts=1)


class Prober:
    """Asks one engine, and knows what each answer took."""

    def __init__(self, engines: HttpEngines, url: str, model: str, part: str) -> None:
        self._door = Door(engines, Endpoint(url=url), 300.0)
        self._model = model
        self._part = part
        self._number = 0

    async def probes(self) -> list[Probe]:
        """Return what new prompts, continued prompts and replies in batches took, at lengths as the runs have them."""
        await self._ask(self._text(16), 8)
        found = [(await self._ask(self._text(words), 1)).prefill for words in (40, 100, 180, 320) for _ in range(2)]
        found += [await self._continued(words, more) for words in (150, 300) for more in (20, 50)]
        for beside in (1, 2, 3, 4):
            for words in (60, 280):
                found += await self._replies(beside, words, 32)
        return found

    async def _continued(self, words: int, more: int) -> Probe:
        """Return what more words at the end of a prompt took that the engine has just seen."""
        text = self._text(words)
        await self._ask(text, 1)
        return (await self._ask(f"{text} {self._text(more)}", 1)).prefill

    async def _replies(self, beside: int, words: int, length: int) -> list[Probe]:
        """Return what the tokens of so many replies took from when all of them had begun."""
        answers = await asyncio.gather(*(self._ask(self._text(words), length) for _ in range(beside)))
        began = max(answer.first_s for answer in answers)
        return [
            Probe(
                seconds=answer.whole_s - answer.first_s,
                steps=length - 1,
                beside=beside,
                context=beside * (answer.prompt + length / 2),
            )
            for answer in answers
            if answer.whole_s > began and answer.first_s >= 0.9 * began
        ]

    def _text(self, words: int) -> str:
        self._number += 1
        return " ".join(context_text(f"probe {self._part} {self._number}", words * 9 + 99).split()[:words])

    async def _ask(self, text: str, length: int) -> Asked:
        body: dict[str, object] = {
            "model": self._model,
            "messages": [{"role": "system", "content": text[:24]}, {"role": "user", "content": text}],
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": length,
            "ignore_eos": True,
        }
        began = time.perf_counter()
        seen = (await take_turn(self._door, (), body)).seen()
        whole_s = time.perf_counter() - began
        computed = max(1, seen.prompt_tokens - seen.cached_tokens)
        return Asked(seen.first_token_s, whole_s, computed, seen.prompt_tokens)


async def _asked(pool: Pool) -> list[Probe]:
    engines = HttpEngines()
    try:
        probers = [Prober(engines, url, pool.model, str(number)) for number, url in enumerate(pool.urls)]
        found = await asyncio.gather(*(prober.probes() for prober in probers))
        return [probe for probes in found for probe in probes]
    finally:
        await engines.close()


def probed(scenario: Scenario) -> list[Probe]:
    """Return what the engines of a scenario say, all of them asked at once, as they are at work at once."""
    with tempfile.TemporaryDirectory() as name, llama_engines(scenario.replicas, Path(name)) as pool:
        return asyncio.run(_asked(pool))


def compare(seeds: Sequence[int], minutes: float) -> Fidelity:
    """Measure and simulate the same runs, the latter by engines fitted to probes before and after each seed.

    A machine is not the same all the time, least of all one that is shared: what a seed meets lies between its probes.
    """
    when, machine = now(), describe_machine()
    scenario = load_scenario(SCENARIO)
    window = Window(warmup_s=scenario.warmup_s, minutes=minutes, real=True)
    rounds = [probed(scenario)]
    measured: list[Figured] = []
    modelled: list[Figured] = []
    for seed in seeds:
        measured.append(measure_over_http(Job(scenario=SCENARIO, arm=ARM, seed=seed), window).figures)
        rounds.append(probed(scenario))
        engine, residual = fitted([*rounds[-2], *rounds[-1]], scenario.engine)
        model = msgspec.structs.replace(scenario, engine=engine, minutes=minutes)
        modelled.append(asdict(simulate(model, ARM, seed).figures))
        said = ", ".join(f"{name} {_said(_off(modelled[-1], measured[-1], name))}" for name in COMPARED)
        print(f"seed {seed}: probes explained but for {residual:.1%}; off by {said}", file=sys.stderr)
    engine, residual = fitted([probe for probes in rounds for probe in probes], scenario.engine)
    pairs = list(zip(modelled, measured, strict=True))
    return Fidelity(
        when=when,
        commit=commit(),
        machine=machine,
        seeds=len(seeds),
        minutes=minutes,
        engine=engine,
        residual=residual,
        measured={name: _middle([each[name] for each in measured]) for name in COMPARED},
        modelled={name: _middle([each[name] for each in modelled]) for name in COMPARED},
        errors={name: _middle([_off(mine, theirs, name) for mine, theirs in pairs]) for name in COMPARED},
    )


def _off(modelled: Figured, measured: Figured, name: str) -> float | None:
    return error_of(modelled[name], measured[name])


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(statistics.median(known), 4) if known else None


def section(fidelity: Fidelity) -> str:
    """Return the section of the measurements, its heading included."""
    rows = []
    for name, measured in fidelity.measured.items():
        both = ("–" if value is None else f"{value:,.2f}" for value in (measured, fidelity.modelled[name]))
        rows.append((name, *both, _said(fidelity.errors[name])))
    engine = fidelity.engine
    return f"""## The engine model against llama.cpp's server

The times of the model are fitted to answers of two servers that are asked at once, before and after each seed; then
both meet the runs of `{SCENARIO}` by round robin. The error is the median over the seeds of how far a seed's model is
off its measurement. Wanted: at most {GOAL:.0%} in runs per minute and run p50.
Repeat it with `python -m benchmarks.fidelity --json benchmarks/results/fidelity.json`.

- Run: {fidelity.when}, commit {fidelity.commit}, {fidelity.seeds} seeds of {fidelity.minutes:g} min.
- Machine: {machine_line(fidelity.machine)}.
- Fitted, with a middle error of {fidelity.residual:.1%} over all probes: {engine.step_s * 1000:.2f} ms a step,
  {engine.decode_s * 1000:.2f} ms for each request that decodes, {engine.context_s * 1e6:.2f} µs for each token of its
  context, {engine.prefill_tps:,.0f} prompt tokens/s and {engine.prefill_context_s * 1e6:.2f} µs for each token that
  stands before one, {engine.request_s * 1000:.2f} ms a prompt.

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
