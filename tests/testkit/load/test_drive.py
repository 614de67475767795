"""A whole load against a fake engine over real sockets."""

import asyncio
import json
from dataclasses import replace

import pytest

from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.ports.engines import EngineRequest
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.fake_engine.server import fake_engine
from luftpause.testkit.fake_engine.settings import Settings
from luftpause.testkit.load.drive import Plan, drive, drive_until
from luftpause.testkit.load.own_loop import Habits
from luftpause.testkit.load.runs import Board, RunFailedError
from luftpause.testkit.load.summary import Summary, summarise
from testkit.running import run

QUICK = Settings(figures=EngineFigures(step_s=0.0005, decode_s=0.0, prefill_tps=1e6), ttft_s=0.0)
HABITS = Habits(
    model="", service_class="batch", caller="me", tool_calls=2, tool_s=0.0, context_chars=4000, max_tokens=64
)
PLAN = Plan(
    base_url="",
    mcp_url="",
    token_env="",
    agents=3,
    sub_agents=0,
    runs=6,
    duration_s=None,
    turn_timeout_s=10,
    habits=HABITS,
)


class NotingEngines(HttpEngines):
    """The real adapter, noting what it is asked to send."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[EngineRequest] = []

    async def send(self, endpoint, request):  # type: ignore[no-untyped-def]
        self.requests.append(request)
        return await super().send(endpoint, request)


def loaded(plan: Plan, settings: Settings = QUICK) -> tuple[Summary, list[EngineRequest]]:
    async def once() -> tuple[Summary, list[EngineRequest]]:
        board, engines = Board(), NotingEngines()
        async with fake_engine(settings) as url:
            await drive(replace(plan, base_url=f"{url}/v1/"), engines, board)
            await engines.close()
        return summarise(board), engines.requests

    return run(once())


def test_agents_take_their_turns_call_their_tools_and_answer() -> None:
    summary, requests = loaded(PLAN)
    assert (summary.runs, summary.failed, summary.errors) == (6, 0, {})
    assert (summary.turns, summary.tool_calls) == (18, 12)
    assert summary.cached_tokens > summary.prompt_tokens * 0.6
    assert summary.first_token_p50_s is not None
    assert requests[0].path == b"/v1/models"


def test_every_turn_of_a_run_says_which_run_class_and_caller_it_belongs_to() -> None:
    _, requests = loaded(replace(PLAN, runs=2))
    turns = [dict(request.headers) for request in requests if request.method == b"POST"]
    assert {turn[b"x-luftpause-class"] for turn in turns} == {b"batch"}
    assert {turn[b"x-luftpause-caller"] for turn in turns} == {b"me"}
    runs = [turn[b"x-luftpause-run-id"] for turn in turns]
    assert len(set(runs)) == 2
    assert all(runs.count(one) == 3 for one in runs)


def test_the_last_turn_forbids_tools_but_still_offers_them_so_that_the_prefix_holds() -> None:
    _, requests = loaded(replace(PLAN, runs=1))
    bodies = [json.loads(request.body) for request in requests if request.method == b"POST"]
    assert [body["tool_choice"] for body in bodies] == ["required", "required", "none"]
    assert all(body["tools"] == bodies[0]["tools"] and body["model"] == "fake-1b" for body in bodies)


def test_without_tools_a_run_is_one_turn() -> None:
    summary, _ = loaded(replace(PLAN, habits=replace(HABITS, tool_calls=0)))
    assert (summary.runs, summary.turns, summary.tool_calls) == (6, 6, 0)


def test_without_a_limit_every_agent_has_one_run() -> None:
    assert loaded(replace(PLAN, runs=None))[0].runs == 3


def test_a_model_that_nobody_serves_fails_every_run() -> None:
    summary, _ = loaded(replace(PLAN, runs=1, habits=replace(HABITS, model="nope")))
    assert (summary.runs, summary.errors) == (0, {"http_404": 1})
    assert "'nope'" in str(summary.first_error)


def test_a_load_that_is_told_to_stop_keeps_what_it_has() -> None:
    async def stopped() -> Summary:
        board, engines, stop, lines = Board(), HttpEngines(), asyncio.Event(), []
        plan = replace(PLAN, habits=replace(HABITS, tool_s=3600))
        async with fake_engine(QUICK) as url:

            def show(line: str) -> None:
                lines.append(line)
                stop.set()

            await drive_until(stop, replace(plan, base_url=url), engines, board, show)
            await engines.close()
        assert "3 under way" in lines[0]
        return summarise(board)

    summary = run(stopped())
    assert (summary.runs, summary.failed, summary.unfinished) == (0, 0, 3)


def test_a_door_that_is_not_there_is_one_failure() -> None:
    async def knock() -> None:
        engines = HttpEngines()
        try:
            await drive_until(asyncio.Event(), replace(PLAN, base_url="http://127.0.0.1:1"), engines, Board(), None)
        finally:
            await engines.close()

    with pytest.raises(RunFailedError) as caught:
        run(knock())
    assert caught.value.kind == "unreachable"
