"""Turns that nobody takes, tools that take their time, and how much a run of the benchmark measures."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.runtimebench.lives import FOUND, LOOKUP

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, PrincipalId, RunId
from luftpause.core.runs.tools import ToolSpec
from luftpause.ports.tools import ToolOutcome
from luftpause.ports.turns import TurnFailedError, TurnReply, TurnRequest
from luftpause.services.runtime.mcp_door import answers
from luftpause.services.runtime.service import RuntimeService


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured.

    Attributes:
        runs: finished runs in the journal.
        agents: sub-agents at once.
        seconds: how long each number of writers writes.
        spawns_per_s: runs that begin beside paced streams.
    """

    runs: int = 100_000
    agents: int = 1000
    seconds: float = 3.0
    spawns_per_s: int = 100


class NoTurns:
    """Nothing is running, so nothing is asked."""

    async def take(self, request: TurnRequest) -> TurnReply:
        """Nobody calls this."""
        raise TurnFailedError("no run is alive")

    async def end_run(self, principal: PrincipalId, run: RunId) -> None:
        """Nobody calls this."""


class SleepyTools:
    """One tool that takes its time."""

    def __init__(self, takes_s: float = 0.0) -> None:
        self._takes_s = takes_s

    async def catalogue(self, _wanted: Sequence[str] | None = None) -> Sequence[ToolSpec]:
        """Return it."""
        return (LOOKUP,)

    async def call(
        self, _tool: ToolSpec, _arguments: Mapping[str, object], _key: str, traceparent: str = ""
    ) -> ToolOutcome:
        """Take it."""
        await asyncio.sleep(self._takes_s)
        return ToolOutcome(text=FOUND)


async def status_ms(service: RuntimeService) -> tuple[float, float]:
    """Return how long the views of the newest 1,000 runs take, and the longest step of the event loop among them."""
    steps: list[float] = []

    async def look_at_the_clock() -> None:
        while True:
            at = time.perf_counter()
            await asyncio.sleep(0)
            steps.append(time.perf_counter() - at)

    looking = asyncio.create_task(look_at_the_clock())
    await asyncio.sleep(0)
    began = time.perf_counter()
    await service.glance(ANONYMOUS_PRINCIPAL).each(answers.run)
    took = time.perf_counter() - began
    looking.cancel()
    return took * 1000, max(steps) * 1000
