"""Drives a whole load: agents at one of the two doors, as many and as long as the plan says.

Constructs no adapter: the caller brings the one that speaks HTTP.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import Engines
from luftpause.testkit.load.closed_loop import closed_loop
from luftpause.testkit.load.own_loop import Habits, own_loop
from luftpause.testkit.load.runs import Board
from luftpause.testkit.load.sub_agents import mcp_client, sub_agent
from luftpause.testkit.load.summary import progress_line
from luftpause.testkit.load.turns import Door, first_model

PROGRESS_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A load.

    Attributes:
        base_url: of the LLM door; a final `/v1` is allowed.
        mcp_url: of the MCP door, path included.
        token_env: environment variable that holds the token of both doors; empty: none.
        agents: own-loop agents at the same time; 0: sub-agents instead.
        sub_agents: sub-agents at the same time.
        runs: how many runs in all; None: no limit but the time.
        duration_s: how long, seconds; None: no limit but the runs.
        turn_timeout_s: longest a turn may take, seconds.
        habits: of the agents; an empty model means the first that the door names.
    """

    base_url: str
    mcp_url: str
    token_env: str
    agents: int
    sub_agents: int
    runs: int | None
    duration_s: float | None
    turn_timeout_s: float
    habits: Habits

    def described(self) -> dict[str, object]:
        """Return what a summary should say of the load itself."""
        return {
            "door": "llm" if self.agents else "mcp",
            "workers": self.agents or self.sub_agents,
            "class": self.habits.service_class,
            "caller": self.habits.caller or None,
            "model": self.habits.model or None,
        }


async def drive_until(
    stop: asyncio.Event, plan: Plan, engines: Engines, board: Board, show: Callable[[str], None] | None
) -> None:
    """Carry out the plan until it is done or `stop` is set, and show a line on the way every PROGRESS_S.

    Raises:
        RunFailedError: see `drive`.
    """
    loop = asyncio.get_running_loop()
    work = asyncio.create_task(drive(plan, engines, board), name="load")
    stopped = asyncio.create_task(stop.wait(), name="stop")
    try:
        done: set[asyncio.Task[Any]] = set()
        while not done:
            done, _ = await asyncio.wait((work, stopped), timeout=PROGRESS_S, return_when=asyncio.FIRST_COMPLETED)
            if show is not None:
                show(progress_line(board, loop.time()))
    finally:
        for task in (work, stopped):
            task.cancel()
        stopped_early = not work.done()
        await asyncio.wait((work, stopped))
    if not (stopped_early and work.cancelled()):
        work.result()


async def drive(plan: Plan, engines: Engines, board: Board) -> None:
    """Carry out the plan; the board shows how far it is.

    Raises:
        RunFailedError: the door names no model, or does not answer at all.
    """
    runs = plan.runs
    if runs is None and plan.duration_s is None:
        runs = plan.agents or plan.sub_agents
    if not plan.agents:
        token = os.environ.get(plan.token_env, "").strip() if plan.token_env else ""
        async with mcp_client(plan.mcp_url, token=token, caller=plan.habits.caller) as client:
            one_run = sub_agent(client, plan.habits)
            await closed_loop(one_run, board, workers=plan.sub_agents, runs=runs, duration_s=plan.duration_s)
        return
    root = plan.base_url.rstrip("/").removesuffix("/v1")
    door = Door(engines, Endpoint(url=root, api_key_env=plan.token_env), plan.turn_timeout_s)
    habits = replace(plan.habits, model=plan.habits.model or await first_model(door))
    await closed_loop(own_loop(door, habits), board, workers=plan.agents, runs=runs, duration_s=plan.duration_s)
