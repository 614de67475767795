"""What stands in front of the engines."""

import asyncio
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from luftpause.config.schema import Config
from luftpause.testkit.bench.over_http import doors as module
from luftpause.testkit.bench.over_http.children import Child
from luftpause.testkit.bench.over_http.doors import (
    HTTP_ARMS,
    AbsentError,
    Front,
    answers,
    luftpause_config,
    open_door,
    shepherd_config,
)
from luftpause.testkit.bench.workloads import OURS
from luftpause.testkit.fake_engine.server import fake_engine
from luftpause.testkit.sim.scenario import RouterFigures
from testkit.running import run


def front(folder: Path) -> Front:
    urls = ("http://127.0.0.1:1", "http://127.0.0.1:2")
    return Front(engines=urls, kind="vllm", model="fake-1b", router=RouterFigures(), folder=folder)


def test_direct_is_the_engines_themselves(tmp_path: Path) -> None:
    door = open_door("direct", front(tmp_path))
    assert (door.urls, door.child) == (("http://127.0.0.1:1", "http://127.0.0.1:2"), None)
    door.close()


def test_luftpause_is_configured_as_its_schema_has_it(tmp_path: Path) -> None:
    config = msgspec.convert(tomllib.loads(luftpause_config(front(tmp_path), "turn-admission")), Config)
    assert [replica.url for replica in config.replicas] == ["http://127.0.0.1:1", "http://127.0.0.1:2"]
    assert config.scheduler.policy == "turn-admission"


def test_what_is_not_here_is_absent_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PEERS", tmp_path)
    for arm in ("sglang-router", "sglang-router-manual", "sglang-router-tuned", "vllm-router", "smg"):
        with pytest.raises(AbsentError, match=r"is not in \.venv-bench"):
            open_door(arm, front(tmp_path))
    with pytest.raises(AbsentError, match="simulation only"):
        open_door("turn-admission-free", front(tmp_path))


def test_our_policies_are_arms() -> None:
    assert set(OURS) <= set(HTTP_ARMS)


def test_a_door_that_does_not_start_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "luftpause_config", lambda *_: "nonsense = 1\n")
    with pytest.raises(AbsentError, match="luftpause ended while starting"):
        open_door("turn-admission", front(tmp_path))


def test_a_bench_that_is_stopped_while_a_door_starts_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Child] = []

    def begin(arguments: Sequence[str], *, log: Path, env: Mapping[str, str]) -> Child:
        begun.append(Child(arguments, log=log, env=env))
        return begun[-1]

    def interrupted(ready: Callable[[], bool], **_: object) -> None:
        ready()
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "wait_until", interrupted)
    monkeypatch.setattr(module, "Child", begin)
    with pytest.raises(KeyboardInterrupt):
        open_door("turn-admission", front(tmp_path))
    assert [child.running for child in begun] == [False]


def test_a_door_answers_or_it_does_not() -> None:
    async def asked() -> tuple[bool, bool]:
        async with fake_engine() as url:
            return await _in_thread(url, "fake-1b"), await _in_thread(url, "another")

    assert run(asked()) == (True, False)
    assert not answers("http://127.0.0.1:1", "fake-1b")


async def _in_thread(url: str, model: str) -> bool:
    return await asyncio.to_thread(answers, url, model)


def test_the_gateway_has_the_scenarios_reserve_and_its_own_times_as_fast_as_all_else(tmp_path: Path) -> None:
    fast = replace(front(tmp_path), pace=10.0, router=RouterFigures(reserved=0.25))
    classes = json.loads(shepherd_config(fast))["classes"]
    assert classes["interactive"]["reserved_per_slot"] == 0.25
    assert (classes["bulk"]["queue_timeout_secs"], classes["bulk"]["starvation_threshold_secs"]) == (30, 12)
    assert classes["interactive"]["starvation_threshold_secs"] == 1
    assert [name for name, own in classes.items() if own["can_preempt"]] == ["system", "interactive"]


def test_sub_agents_tools_are_part_of_the_configuration(tmp_path: Path) -> None:
    tools = '\n[[tools]]\nname = "fake"\nurl = "http://127.0.0.1:9/mcp"\n'
    text = luftpause_config(replace(front(tmp_path), tools=tools), "working-set")
    config = msgspec.convert(tomllib.loads(text), Config)
    assert [tool.url for tool in config.tools] == ["http://127.0.0.1:9/mcp"]
