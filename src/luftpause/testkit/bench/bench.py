"""A whole workload: its measurements, then its figures and verdicts."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from luftpause.testkit.bench.claims import judge
from luftpause.testkit.bench.jobs import Done, run_jobs
from luftpause.testkit.bench.machine import Machine, commit, describe_machine, now
from luftpause.testkit.bench.over_http.burden import busiest
from luftpause.testkit.bench.over_http.doors import AbsentError
from luftpause.testkit.bench.over_http.measure import measure_over_http
from luftpause.testkit.bench.over_http.versions import versions_of
from luftpause.testkit.bench.results import EngineShell, WorkloadResult, arm_results
from luftpause.testkit.bench.samples import Sample
from luftpause.testkit.bench.simulated import Job
from luftpause.testkit.bench.windows import Window
from luftpause.testkit.bench.workloads import OURS, OWN, Workload

START_S: Final = 3.0
"""What it takes to start engines and a door, about, and to end them."""

Begins = Callable[[Job], None]
"""Told of each measurement before it is made."""

Gathered = dict[str, dict[str, list[Sample]]]
"""Samples by scenario, then by arm, as they come in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured.

    Attributes:
        seeds: each is one repetition.
        minutes: counted time of each, virtual; None for the scenario's own.
        processes: how many simulate at the same time.
    """

    seeds: tuple[int, ...]
    minutes: float | None = None
    processes: int = 1


def jobs_of(workload: Workload, arms: Sequence[str], effort: Effort) -> list[Job]:
    """Return all measurements of a workload: for each scenario, arm and seed one."""
    return [
        Job(
            scenario=scenario,
            arm=arm,
            seed=seed,
            minutes=effort.minutes,
            checked=workload.checked,
            door=workload.door,
        )
        for scenario in workload.scenarios
        for arm in arms
        for seed in effort.seeds
    ]


def simulate_workload(workload: Workload, arms: Sequence[str], effort: Effort, done: Done) -> WorkloadResult:
    """Measure a workload on arms in virtual time; `done` is told of each seed of each of them."""
    began, machine, of = time.perf_counter(), describe_machine(), commit()
    jobs = jobs_of(workload, arms, effort)
    samples: Gathered = {}
    for job, sample in zip(jobs, run_jobs(jobs, done, processes=effort.processes), strict=True):
        samples.setdefault(job.scenario, {}).setdefault(job.arm, []).append(sample)
    setup = {} if effort.minutes is None else {"minutes": f"{effort.minutes:g} instead of the scenario's own"}
    return _result(workload, effort, samples, Taken("sim", began, machine, of, {}, setup))


def expected_s(count: int, window: Window) -> float:
    """Return how long so many measurements over HTTP take, seconds: each starts engines and a door of its own."""
    return count * (window.until_s / window.pace + START_S)


def measure_workload(
    workload: Workload, arms: Sequence[str], effort: Effort, window: Window, done: Done, begins: Begins
) -> WorkloadResult:
    """Measure a workload over HTTP, one after the other; arms that cannot be had are named as absent.

    Seeds are the outer loop: what the machine does meanwhile meets all arms alike. `begins` is told of each measurement
    before it is made, `done` after it.
    """
    began, machine, of = time.perf_counter(), describe_machine(), commit()
    samples: Gathered = {scenario: {arm: [] for arm in arms} for scenario in workload.scenarios}
    absent: dict[str, str] = {}
    cores: list[Mapping[str, float]] = []
    for job in sorted(jobs_of(workload, arms, effort), key=lambda job: (job.scenario, job.seed)):
        if job.arm in absent:
            continue
        begins(job)
        try:
            sample = measure_over_http(job, window)
        except AbsentError as error:
            absent[job.arm] = str(error)
            continue
        samples[job.scenario][job.arm].append(sample)
        cores.append(sample.cores)
        done(job, sample)
    setup = {
        "warm-up": f"{window.warmup_s:g} s",
        "minutes": f"{window.minutes:g}",
        "speed of time": f"{window.pace:g}",
        "most cores busy": busiest(cores),
    }
    shell: EngineShell = "llama" if window.real else "http"
    there = [arm for arm in arms if arm not in absent]
    versions = versions_of(there, workload.door, real=window.real)
    return _result(workload, effort, samples, Taken(shell, began, machine, of, absent, setup, versions))


@dataclass(frozen=True, slots=True)
class Taken:
    """How samples were taken.

    By which shell, since when (of the performance counter), where, of what as it was then, without whom, how, and in
    which versions.
    """

    shell: EngineShell
    began: float
    machine: Machine
    commit: str
    absent: Mapping[str, str]
    setup: Mapping[str, str]
    versions: Mapping[str, str] = field(default_factory=dict)


def _result(workload: Workload, effort: Effort, samples: Gathered, taken: Taken) -> WorkloadResult:
    return WorkloadResult(
        workload=workload.name,
        engine=taken.shell,
        commit=taken.commit,
        when=now(),
        seeds=effort.seeds,
        seconds=round(time.perf_counter() - taken.began, 1),
        machine=taken.machine,
        arms=arm_results(samples),
        verdicts=tuple(judge(workload.claims, samples, OURS, OWN, noisy=taken.shell != "sim")),
        absent=taken.absent,
        setup=taken.setup,
        versions=taken.versions,
    )
