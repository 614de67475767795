"""Starts the workers of a door, keeps them running, and knows what they counted together."""

import asyncio
from collections.abc import Sequence

from luftpause.adapters.crew.worker import Worker, WorkerPlan
from luftpause.telemetry.exposition import Counts, summed


class CrewLostError(Exception):
    """No worker is left, and none will come back."""


class Foreman:
    """Holds the workers together. Needs the running event loop."""

    def __init__(self, plans: Sequence[WorkerPlan]) -> None:
        self._workers = [Worker(plan, ask_all=self.counts) for plan in plans]
        self._stopping = False

    async def run(self) -> None:
        """Run all workers until they are stopped. Cancelling it kills them.

        Raises:
            CrewLostError: each has failed too often in a row. While one is left it goes on alone.
        """
        async with asyncio.TaskGroup() as tasks:
            for worker in self._workers:
                tasks.create_task(worker.run())
        if not self._stopping:
            raise CrewLostError("every worker failed too often in a row")

    async def ready(self) -> None:
        """Return once the doors of all workers have been open.

        Raises:
            WorkerFailedError: one of them did not start.
        """
        await asyncio.gather(*(worker.ready for worker in self._workers))

    def stop(self) -> None:
        """Let all workers drain and end; `run` returns once they have."""
        self._stopping = True
        for worker in self._workers:
            worker.stop()

    async def counts(self) -> Counts:
        """Return what all workers counted together. What one counted after it was last asked dies with it."""
        await asyncio.gather(*(worker.ask() for worker in self._workers))
        return summed(worker.counts for worker in self._workers)
