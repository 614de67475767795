"""A scenario's closed loops as sub-agents over MCP: a harness spawns each run and awaits it, the runtime does the rest.

Of a tree the harness is the parent itself: it spawns all the children at once and awaits them.

A run is told its rounds of tools, the length of its calls and that of its answer in its task, which the fake engine
obeys; its tool is the one of `luftpause fake-mcp`, as slow as the group's are in the middle.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mcp import Client

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL
from luftpause.testkit.bench.over_http.children import Child, wait_until
from luftpause.testkit.bench.over_http.conversation import CALL_TOKENS_MAX, CHARS_PER_TOKEN, argument
from luftpause.testkit.bench.over_http.doors import READY_S, AbsentError, Front, open_door, started
from luftpause.testkit.bench.windows import Window
from luftpause.testkit.load.closed_loop import closed_loop
from luftpause.testkit.load.own_loop import Habits
from luftpause.testkit.load.runs import Board, RunNotes
from luftpause.testkit.load.sub_agents import mcp_client, sub_agent
from luftpause.testkit.load.tasks import context_text
from luftpause.testkit.sim.agent_groups import AgentGroup
from luftpause.testkit.sim.past import Begun, EndedRun, Past
from luftpause.testkit.sim.plans import RunPlan, alone_s, draw_plan
from luftpause.testkit.sim.scenario import Scenario


@contextmanager
def fake_tools(scenario: Scenario, window: Window, folder: Path) -> Iterator[str]:
    """Run the tools of a scenario's sub-agents; give them as luftpause's configuration has them."""
    delay_s = scenario.agents[0].tools[0].median_s / window.pace
    ready = folder / "tools.json"
    command = [sys.executable, "-m", "luftpause", "fake-mcp", "--port", "0", "--ready-file", str(ready)]
    child = Child([*command, "--delay-s", f"{delay_s:g}"], log=folder / "tools.log")
    try:
        wait_until(lambda: ready.exists() or not child.running, timeout_s=READY_S, what="the tools")
        if not ready.exists():
            raise AbsentError(f"the tools ended while starting: {child.tail()}")
        url = json.loads(ready.read_text(encoding="utf-8"))["fake_mcp"]
        yield f'\n[[tools]]\nname = "fake"\nurl = "{url}/mcp"\n'
    finally:
        child.stop()


@contextmanager
def mcp_door(arm: str, front: Front) -> Iterator[tuple[str, tuple[Child, ...]]]:
    """Open an arm with a runtime: our own, or one straight to the router. Give its MCP door and all processes.

    Raises:
        AbsentError: it cannot be had here.
    """
    door = open_door(arm, front)
    try:
        if door.mcp_url:
            yield door.mcp_url, door.children
            return
        state = json.dumps(str(front.folder / "state"))
        config = f'[runtime]\nport = 0\nstate_dir = {state}\ndataplane_url = "{door.urls[0]}"\n{front.tools}'
        runtime, said = started(front.folder, "runtime", config)
        try:
            yield f"{said['runtime']}/mcp", (*door.children, runtime)
        finally:
            runtime.stop()
    finally:
        door.close()


@dataclass(slots=True)
class _Loop:
    """One group's runs: by which plan each goes, and what became of them and of their children."""

    group: AgentGroup
    stream: int
    plans: dict[int, RunPlan] = field(default_factory=dict)
    board: Board = field(default_factory=Board)
    children: list[tuple[RunPlan, RunNotes]] = field(default_factory=list)


class SubAgents:
    """Plays the closed loops of a scenario for a while; open loops are none of its business, nor are deep trees."""

    def __init__(self, scenario: Scenario, seed: int, window: Window, *, model: str) -> None:
        self._engine = scenario.engine
        self._seed = seed
        self._window = window
        self._model = model
        self._groups = {group.name: group for group in scenario.agents}
        self._loops = [_Loop(group, stream) for stream, group in enumerate(scenario.agents) if group.count]

    async def play(self, url: str) -> Past:
        """Play at an MCP door until the window's end, and return what happened. What is under way is dropped.

        Raises:
            RunFailedError: the door cannot be reached.
        """
        await asyncio.gather(*(self._loop(url, loop) for loop in self._loops))
        return Past(
            ended=[run for loop in self._loops for run in self._ended(loop)],
            answered=(),
            under_way=[
                Begun(stream=loop.stream, begun_at=self._planned_s(loop, notes))
                for loop in self._loops
                for notes in loop.board.under_way.values()
            ],
            unfinished=sum(len(loop.board.under_way) for loop in self._loops),
            failed_turns=0,
        )

    async def _loop(self, url: str, loop: _Loop) -> None:
        async with mcp_client(url, token="", caller=loop.group.name) as client:

            async def one_run(notes: RunNotes) -> None:
                plan = draw_plan(loop.group, self._seed, notes.number, self._groups)
                loop.plans[notes.number] = plan
                children = [child for leg in plan.legs for child in leg.children]
                if children:
                    await asyncio.gather(*(self._child(client, loop, child) for child in children))
                else:
                    await sub_agent(client, habits_of(plan, self._model))(notes)

            lasts_s = self._window.until_s / self._window.pace
            await closed_loop(one_run, loop.board, workers=loop.group.count, runs=None, duration_s=lasts_s)

    async def _child(self, client: Client, loop: _Loop, plan: RunPlan) -> None:
        notes = RunNotes(number=0, started_at=asyncio.get_running_loop().time())
        await sub_agent(client, habits_of(plan, self._model))(notes)
        notes.run_s = asyncio.get_running_loop().time() - notes.started_at
        loop.children.append((plan, notes))

    def _planned_s(self, loop: _Loop, notes: RunNotes) -> float:
        """Return when a run began, planned seconds from the beginning."""
        assert loop.board.started_at is not None
        return (notes.started_at - loop.board.started_at) * self._window.pace

    def _ended(self, loop: _Loop) -> Iterator[EndedRun]:
        own = [(loop.plans[notes.number], notes) for notes in loop.board.ended]
        for plan, notes in (*own, *loop.children):
            begun_at = self._planned_s(loop, notes)
            yield EndedRun(
                run=plan.run,
                service_class=plan.service_class,
                stream=loop.stream,
                parent=plan.parent,
                principal=ANONYMOUS_PRINCIPAL,
                caller=plan.caller,
                alone_s=alone_s(plan, self._engine),
                service=0.0,
                begun_at=begun_at,
                ended_at=begun_at + notes.run_s * self._window.pace,
                turns=len(plan.legs),
                turn_s=(),
                reprefilled_tokens=0,
                moves=0,
                failed=notes.failure is not None,
            )


def habits_of(plan: RunPlan, model: str) -> Habits:
    """Return what a planned run is to a harness: a task of about as many tokens, with orders for the fake engine.

    It may call one tool more than it will: the turn after the last call that a budget allows is offered no tools, and
    then its engine knows nothing of the prompt any more.
    """
    rounds, answer = len(plan.legs) - 1, plan.legs[-1].reply_tokens
    call = argument(min(CALL_TOKENS_MAX, plan.legs[0].reply_tokens), plan.run)
    orders = f"[tools:{rounds}] [tokens:{answer}] [tool:lookup] [arg:query={call}]"
    text = context_text(plan.run, max(0, plan.legs[0].new_tokens * CHARS_PER_TOKEN - len(orders)))
    return Habits(
        model=model,
        service_class=plan.service_class.value,
        caller=plan.caller,
        tool_calls=rounds + 1,
        tool_s=0.0,
        context_chars=0,
        max_tokens=plan.reply_tokens_max,
        task=f"{text} {orders}",
    )
