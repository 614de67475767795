"""One scenario, one arm, one seed over HTTP: engines and door are started for it, so nothing is cached before."""

import asyncio
import tempfile
import time
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Final

import uvloop

from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.testkit.bench.curves import curves_of
from luftpause.testkit.bench.over_http import single_pass
from luftpause.testkit.bench.over_http.agents import Agents, Place
from luftpause.testkit.bench.over_http.burden import Burden
from luftpause.testkit.bench.over_http.doors import AbsentError, Front, open_door
from luftpause.testkit.bench.over_http.engines import Pool, fake_engines, llama_engines
from luftpause.testkit.bench.over_http.sub_agents import SubAgents, fake_tools, mcp_door
from luftpause.testkit.bench.samples import Sample
from luftpause.testkit.bench.simulated import Job
from luftpause.testkit.bench.windows import Window
from luftpause.testkit.sim.figures import figures_of
from luftpause.testkit.sim.past import Past
from luftpause.testkit.sim.scenario import Scenario, load_scenario
from luftpause.testkit.sim.sources import Drawn

UNSEEN: Final = ("moves_per_run", "retractions", "loads")
"""Figures that nobody sees from outside."""

UNSEEN_OVER_MCP: Final = (
    *("reprefilled_tokens_per_run", "cached_share", "prompt_cached_share"),
    *("fairness", "failed_turns", "longest_turn_s"),
)
"""Figures of turns, which a harness does not see that has its runs done by sub-agents."""

Played = tuple[Past, dict[str, float]]
"""What happened, and how many cores that kept busy."""


def measure_over_http(job: Job, window: Window) -> Sample:
    """Measure it.

    Raises:
        AbsentError: the arm cannot be had here, or the scenario cannot be played over HTTP.
        ConfigError: there is no such scenario.
    """
    if job.door == "decide":
        return single_pass.measure_calls(job, window)
    scenario = load_scenario(job.scenario)
    _check_playable(scenario)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="luftpause-bench-") as name:
        folder = Path(name)
        with _engines(job, scenario, window, folder) as pool:
            play = _play_over_mcp if job.door == "mcp" else _play
            past, cores = play(job, scenario, window, pool, folder)
    figures = asdict(figures_of(past, scenario, window.warmup_s, window.until_s))
    unseen = UNSEEN if job.door == "llm" else (*UNSEEN, *UNSEEN_OVER_MCP)
    ended = [run for run in past.ended if window.warmup_s < run.ended_at <= window.until_s]
    return Sample(
        figures={**figures, **dict.fromkeys(unseen)},
        curves=curves_of(ended, past.answered, window.warmup_s, window.until_s),
        took_s=time.perf_counter() - began,
        cores=cores,
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


def _front(scenario: Scenario, window: Window, pool: Pool, folder: Path, tools: str = "") -> Front:
    return Front(
        engines=pool.urls,
        kind=pool.kind,
        model=pool.model,
        router=scenario.router,
        folder=folder,
        pace=window.pace,
        tools=tools,
    )


def _play(job: Job, scenario: Scenario, window: Window, pool: Pool, folder: Path) -> Played:
    door = open_door(job.arm, _front(scenario, window, pool, folder))
    try:
        place = Place(
            doors=door.urls,
            model=pool.model,
            real=pool.real,
            speed=window.pace,
            engine=scenario.engine,
            faults=scenario.faults,
        )
        burden = Burden({"engine": pool.children, "door": door.children})
        return _run(_played(place, Drawn(scenario, job.seed), window.until_s)), burden.cores()
    finally:
        door.close()


def _play_over_mcp(job: Job, scenario: Scenario, window: Window, pool: Pool, folder: Path) -> Played:
    with (
        fake_tools(scenario, window, folder) as tools,
        mcp_door(job.arm, _front(scenario, window, pool, folder, tools)) as (url, children),
    ):
        burden = Burden({"engine": pool.children, "door": children})
        agents = SubAgents(scenario, job.seed, window, model=pool.model)
        return _run(agents.play(url)), burden.cores()


def _run(play: Coroutine[object, object, Past]) -> Past:
    """Play on a loop that takes as little as it can of the processors that are measured."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(play)


async def _played(place: Place, source: Drawn, until: float) -> Past:
    engines = HttpEngines()
    try:
        return await Agents(place, source, engines).play(until)
    finally:
        await engines.close()
