"""Many measurements over several processes. What comes of one depends on no other, nor on who simulates it."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager

from luftpause.testkit.bench.samples import Sample
from luftpause.testkit.bench.simulated import Job, measure

Done = Callable[[Job, Sample], None]
"""Told of each measurement as it ends."""


def cores() -> int:
    """Return how many processes are of use here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_jobs(jobs: Sequence[Job], done: Done, *, processes: int) -> list[Sample]:
    """Return the sample of each job, in the order of the jobs. Whatever ends it early ends the processes at once."""
    if processes < 2:
        samples = []
        for job in jobs:
            samples.append(measure(job))
            done(job, samples[-1])
        return samples
    context = multiprocessing.get_context("spawn")
    found: dict[int, Sample] = {}
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        with _deaf_to_the_terminal():
            # The last arms, ours, take longest: begun first, they leave nobody idle at the end.
            futures = {pool.submit(measure, jobs[number]): number for number in reversed(range(len(jobs)))}
        try:
            for future in as_completed(futures):
                found[futures[future]] = future.result()
                done(jobs[futures[future]], found[futures[future]])
        except BaseException:
            # The pool takes that for a crash, gives the rest up and is waited for: it alone may reap its processes.
            for process in multiprocessing.active_children():
                process.terminate()
            raise
    return [found[number] for number in range(len(jobs))]


@contextmanager
def _deaf_to_the_terminal() -> Iterator[None]:
    """Let processes that start meanwhile never hear of Ctrl-C or its closing: it tells all, and we alone end them."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
