"""Measurements over several processes."""

import multiprocessing

import pytest

from luftpause.testkit.bench.jobs import cores, run_jobs
from luftpause.testkit.bench.samples import Sample
from luftpause.testkit.bench.simulated import Job


def test_samples_come_in_the_order_of_the_jobs() -> None:
    jobs = [Job(scenario="w7-slow", arm=arm, seed=1, minutes=0.1) for arm in ("turn-admission", "direct")]
    told: list[str] = []
    both = run_jobs(jobs, lambda job, _: told.append(job.arm), processes=2)
    alone = run_jobs(jobs, lambda *_: None, processes=1)
    assert [each.figures for each in both] == [each.figures for each in alone]
    assert sorted(told) == ["direct", "turn-admission"]
    assert cores() >= 1


def test_whoever_stops_it_leaves_no_process_at_work() -> None:
    jobs = [Job(scenario="w7-slow", arm="direct", seed=1, minutes=minutes) for minutes in (10_000.0, 10_000.0, 0.1)]

    def stop(job: Job, sample: Sample) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, stop, processes=2)
    assert not multiprocessing.active_children()
