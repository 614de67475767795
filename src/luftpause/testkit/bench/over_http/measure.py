"""One scenario, one arm, one seed over HTTP: engines and door are started for it, so nothing is cached before."""

import asyncio
import tempfile
import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.testkit.bench.curves import curves_of
from luftpause.testkit.bench.over_http.agents import Agents, Place
from luftpause.testkit.bench.over_http.doors import AbsentError, Front, open_door
from luftpause.testkit.bench.over_http.engines import Pool, fake_engines, llama_engines
from luftpause.testkit.bench.samples import Sample
from luftpause.testkit.bench.simulated import Job
from luftpause.testkit.sim.figures import figures_of
from luftpause.testkit.sim.past import Past
from luftpause.testkit.sim.scenario import Scenario, load_scenario
from luftpause.testkit.sim.sources import Drawn

UNSEEN: Final = ("moves_per_run", "retractions", "loads")
"""Figures that nobody sees from outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """How long and how fast: planned seconds before anything is counted, planned minutes, and the speed of time."""

    warmup_s: float = 30.0
    minutes: float = 2.0
    speed: float = 4.0
    real: bool = False


def measure_over_http(job: Job, window: Window) -> Sample:
    """Measure it.

    Raises:
        AbsentError: the arm cannot be had here, or the scenario cannot be played over HTTP.
        ConfigError: there is no such scenario.
    """
    scenario = load_scenario(job.scenario)
    _check_playable(scenario)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="luftpause-bench-") as name:
        folder = Path(name)
        with _engines(job, scenario, window, folder) as pool:
            past = _play(job, scenario, window, pool, folder)
    until = window.warmup_s + window.minutes * 60
    figures = {**asdict(figures_of(past, scenario, window.warmup_s, until)), **dict.fromkeys(UNSEEN)}
    ended = [run for run in past.ended if window.warmup_s < run.ended_at <= until]
    return Sample(
        figures=figures,
        curves=curves_of(ended, past.answered, window.warmup_s, until),
        took_s=time.perf_counter() - began,
    )


def _check_playable(scenario: Scenario) -> None:
    trouble = scenario.faults.refused or scenario.faults.cut or scenario.faults.stale_probes
    if trouble or scenario.outages or scenario.restarts_s or scenario.models:
        raise AbsentError(f"{scenario.name} has faults or models that only the simulator can make happen")
    if any(group.principal for group in scenario.agents):
        raise AbsentError(f"{scenario.name} has principals, which need tokens")


def _engines(job: Job, scenario: Scenario, window: Window, folder: Path) -> AbstractContextManager[Pool]:
    if window.real:
        return llama_engines(scenario.replicas, folder)
    return fake_engines(scenario, job.scenario, speed=window.speed, folder=folder)


def _play(job: Job, scenario: Scenario, window: Window, pool: Pool, folder: Path) -> Past:
    front = Front(engines=pool.urls, kind=pool.kind, model=pool.model, router=scenario.router, folder=folder)
    door = open_door(job.arm, front)
    try:
        place = Place(
            doors=door.urls,
            model=pool.model,
            real=pool.real,
            speed=1.0 if window.real else window.speed,
            engine=scenario.engine,
            faults=scenario.faults,
        )
        return asyncio.run(_played(place, Drawn(scenario, job.seed), window.warmup_s + window.minutes * 60))
    finally:
        door.close()


async def _played(place: Place, source: Drawn, until: float) -> Past:
    engines = HttpEngines()
    try:
        return await Agents(place, source, engines).play(until)
    finally:
        await engines.close()
