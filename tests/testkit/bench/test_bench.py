"""A whole workload in virtual time."""

import msgspec
import pytest

from luftpause.testkit.bench import bench as module
from luftpause.testkit.bench.bench import Effort, jobs_of, measure_workload, simulate_workload
from luftpause.testkit.bench.over_http.doors import AbsentError
from luftpause.testkit.bench.results import WorkloadResult
from luftpause.testkit.bench.samples import Sample
from luftpause.testkit.bench.simulated import Job
from luftpause.testkit.bench.windows import Window
from testkit.bench.measured import SMALL, sample

EFFORT = Effort(seeds=(3, 4), minutes=0.3)


def measured(processes: int = 1) -> tuple[WorkloadResult, list[tuple[str, int]]]:
    told: list[tuple[str, int]] = []

    def done(job: Job, sample: Sample) -> None:
        told.append((job.arm, job.seed))

    effort = Effort(seeds=EFFORT.seeds, minutes=EFFORT.minutes, processes=processes)
    return simulate_workload(SMALL, SMALL.arms, effort, done), told


def test_every_arm_meets_every_seed_and_the_same_seeds_give_the_same_figures() -> None:
    result, told = measured()
    assert told == [(arm, seed) for arm in SMALL.arms for seed in EFFORT.seeds]
    assert [arm.arm for arm in result.arms] == list(SMALL.arms)
    assert result.setup == {"minutes": "0.3 instead of the scenario's own"}
    again, _ = measured()
    assert again.arms == result.arms
    assert again.verdicts == result.verdicts


def test_who_simulates_makes_no_difference() -> None:
    alone, _ = measured()
    together, told = measured(processes=2)
    assert together.arms == alone.arms
    assert sorted(told) == sorted((arm, seed) for arm in SMALL.arms for seed in EFFORT.seeds)


def test_arms_meet_the_same_runs() -> None:
    result, _ = measured()
    begun = {arm.arm: arm.figures["runs_per_min"].by_seed for arm in result.arms}
    assert len(begun) == 3
    assert [job.checked for job in jobs_of(SMALL, ("direct",), EFFORT)] == [False, False]


def test_claims_become_verdicts_on_ours() -> None:
    result, _ = measured()
    (verdict,) = result.verdicts
    assert (verdict.arm, verdict.met) == ("turn-admission", True)


def test_over_http_an_arm_that_cannot_be_had_is_absent_and_the_others_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, int]] = []

    def measure(job: Job, window: Window) -> Sample:
        asked.append((job.arm, job.seed))
        if job.arm == "sglang-router-tuned":
            raise AbsentError("is not installed")
        busy = {"engine": 0.25 / job.seed * 3, "agents": 0.5}
        return msgspec.structs.replace(sample(2.0), cores=busy)

    monkeypatch.setattr(module, "measure_over_http", measure)
    told: list[str] = []
    window = Window(warmup_s=5.0, minutes=1.0, speed=2.0)
    begun: list[tuple[str, int]] = []
    result = measure_workload(
        *(SMALL, SMALL.arms, EFFORT, window),
        done=lambda job, _: told.append(job.arm),
        begins=lambda job: begun.append((job.arm, job.seed)),
    )
    assert begun == asked
    assert asked == [
        ("direct", 3),
        ("sglang-router-tuned", 3),
        ("turn-admission", 3),
        ("direct", 4),
        ("turn-admission", 4),
    ]
    assert told == ["direct", "turn-admission"] * 2
    assert (result.engine, result.absent) == ("http", {"sglang-router-tuned": "is not installed"})
    assert result.setup == {
        "warm-up": "5 s",
        "minutes": "1",
        "speed of time": "2",
        "most cores busy": "engine 0.25, agents 0.50",
    }
    assert [arm.arm for arm in result.arms] == ["direct", "turn-admission"]
    assert [verdict.met for verdict in result.verdicts] == [False]
