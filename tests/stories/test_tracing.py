"""Traces and counts of real processes, as a collector gets them over OTLP."""

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import Client
from mcp_types import RequestParamsMeta

from stories.otlp import Receiver, Relay, Seen, receiver, relay
from stories.programs import Program, launch, running
from stories.raw_wire import soon
from stories.set_ups import FREE_PORTS, MODEL, free_port, replicas, write

pytestmark = [pytest.mark.timeout(180), pytest.mark.slow]
WAIT_S = 45.0
TRACE = "0af7651916cd43dd8448eb211c80319c"
OUTER = "b7ad6b7169203331"
LOOK: dict[str, object] = {"task": "[tools:1] [tool:lookup] look at the sky", "tools": ["lookup"]}
CLIENT, SERVER, INTERNAL = 3, 2, 1


@dataclass
class Traced:
    """Three services with a collector, an engine and a tool server, the last two behind relays."""

    directory: Path
    collector: Receiver
    engine: Relay
    tools: Relay
    config: str
    programs: dict[str, Program] = field(default_factory=dict)

    def start(self, service: str, *options: str) -> None:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": self.collector.url, "OTEL_METRIC_EXPORT_INTERVAL": "1000"}
        arguments = (service, "--config", self.config, *options)
        self.programs[service] = launch(self.directory, service, *arguments, env=env)

    def client(self) -> Client:
        return Client(self.programs["runtime"].url("runtime") + "/mcp")

    def counted(self, service: str, name: str) -> bool:
        """Whether a service has sent a count of this name."""
        return name in self.collector.metrics.get(service, ())

    def arrived(self, name: str, count: int) -> list[Seen]:
        """Wait for so many spans of a name."""
        assert soon(lambda: len(self.collector.named(name)) >= count, WAIT_S), [
            (each.service, each.name) for each in self.collector.spans
        ]
        return self.collector.named(name)


def traced_set_up(directory: Path, stack: ExitStack, tool_delay: str = "0") -> Traced:
    enter = stack.enter_context
    quick = ("--ttft-ms", "1", "--token-ms", "1")
    engine = enter(running(directory, "engine", "fake-engine", "--port", "0", "--model", MODEL, *quick))
    delays = ("--delay-s", tool_delay, "--deep-delay-s", tool_delay)
    server = enter(running(directory, "tools", "fake-mcp", "--port", "0", *delays))
    ahead, beside = enter(relay(engine.url("engine"))), enter(relay(next(iter(server.services.values()))))
    link, http, door, mcp = (free_port() for _ in range(4))
    config = write(
        directory,
        replicas(ahead.url),
        f'[[tools]]\nname = "sky"\nurl = "{beside.url}/mcp"\n',
        f"[scheduler]\nport = {link}\nhttp_port = {http}\n[dataplane]\nport = {door}\n[runtime]\nport = {mcp}\n",
    )
    made = Traced(directory, enter(receiver()), ahead, beside, config)
    stack.callback(ended, made)
    return made


def ended(made: Traced) -> None:
    for program in made.programs.values():
        if program.process.poll() is None:
            program.process.terminate()
    for program in made.programs.values():
        program.process.wait(20)


@pytest.fixture
def split(tmp_path: Path) -> Iterator[Traced]:
    with ExitStack() as stack:
        made = traced_set_up(tmp_path, stack)
        made.start("scheduler", "--event-log", str(tmp_path / "events.jsonl"))
        made.start("dataplane")
        made.start("runtime")
        yield made


async def spawned(client: Client, arguments: dict[str, object], trace: str = "") -> str:
    meta = cast("RequestParamsMeta", {"traceparent": trace}) if trace else None
    result = await asyncio.wait_for(client.call_tool("spawn", {**arguments, "model": MODEL}, meta=meta), WAIT_S)
    assert not result.is_error, result.content
    handle: str = result.structured_content["handle"]
    return handle


async def finished(client: Client, handle: str) -> dict[str, Any]:
    asked = {"handles": [handle], "timeout": WAIT_S}
    result = await asyncio.wait_for(client.call_tool("await", asked), WAIT_S + 5)
    run: dict[str, Any] = result.structured_content["runs"][0]
    assert run["status"] == "Finished", run
    return run


def test_a_sub_agent_s_spans_stand_in_the_trace_of_who_spawned_it(split: Traced) -> None:
    async def story() -> tuple[str, str]:
        async with split.client() as client:
            parent = await spawned(client, LOOK, f"00-{TRACE}-{OUTER}-01")
            child = await spawned(client, {"task": "say hello", "tools": [], "parent": parent})
            await finished(client, parent)
            await finished(client, child)
            return parent, child

    parent, child = asyncio.run(story())
    runs = {each.attributes["gen_ai.conversation.id"]: each for each in split.arrived("invoke_agent", 2)}
    top, below = runs[parent], runs[child]
    chats, calls = split.arrived("chat", 3), split.arrived("execute_tool", 1)
    turns, admits = split.arrived("turn", 3), split.arrived("admit", 3)
    everything = [top, below, *chats, *calls, *turns, *admits]
    assert {each.trace for each in everything} == {TRACE}
    assert len({each.span for each in everything}) == len(split.collector.spans) == 12

    assert (top.parent, top.service, top.kind) == (OUTER, "luftpause-runtime", INTERNAL)
    assert (below.parent, below.attributes["luftpause.parent"]) == (top.span, parent)
    assert top.attributes["luftpause.turns"] == 2
    assert top.attributes["gen_ai.usage.input_tokens"] > 0
    of_parent = [each for each in chats if each.parent == top.span]
    assert [each.attributes["gen_ai.response.finish_reasons"] for each in of_parent] == [["tool_calls"], ["stop"]]
    assert [each.parent for each in chats if each not in of_parent] == [below.span]
    for chat in chats:
        assert (chat.service, chat.kind, chat.name) == ("luftpause-runtime", CLIENT, f"chat {MODEL}")
        assert chat.attributes["gen_ai.operation.name"] == "chat"
        assert chat.attributes["gen_ai.usage.input_tokens"] > 0
        assert chat.attributes["gen_ai.usage.output_tokens"] > 0

    (call,) = calls
    assert (call.parent, call.kind, call.name) == (
        top.span,
        INTERNAL,
        f"execute_tool {call.attributes['gen_ai.tool.name']}",
    )
    assert call.attributes["gen_ai.tool.call.id"]
    assert {each.parent for each in turns} == {each.span for each in chats}
    assert {each.parent for each in admits} == {each.span for each in turns}
    for turn in turns:
        assert (turn.service, turn.kind) == ("luftpause-dataplane", SERVER)
        assert turn.attributes["luftpause.replica"] == "engine-1"
        assert turn.attributes["gen_ai.response.time_to_first_chunk"] > 0
    for admit in admits:
        assert (admit.service, admit.attributes["luftpause.replica"]) == ("luftpause-scheduler", "engine-1")
        assert admit.attributes["luftpause.held_ms"] >= 0
    assert all(each.began <= each.ended for each in everything)

    assert sorted(split.engine.traces) == sorted(f"00-{TRACE}-{each.span}-01" for each in turns)
    (made,) = [body for body in split.tools.bodies if b'"tools/call"' in body]
    told = f"00-{TRACE}-{call.span}-01"
    assert json.loads(made)["params"]["_meta"]["traceparent"] == told
    assert split.tools.traces[split.tools.bodies.index(made)] == told
    turns_told(split.directory / "events.jsonl", len(turns))


def test_a_decision_stands_in_the_trace_of_who_asked_for_it(split: Traced) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"

    async def story() -> None:
        async with split.client() as client:
            meta = cast("RequestParamsMeta", {"traceparent": f"00-{trace}-{OUTER}-01"})
            asked = {"input": "the phone rings", "labels": ["urgent", "lookup"]}
            result = await asyncio.wait_for(client.call_tool("decide", asked, meta=meta), WAIT_S)
            assert not result.is_error, result.content

    asyncio.run(story())
    assert soon(lambda: any(each.trace == trace for each in split.collector.named("turn")), WAIT_S)
    (turn,) = [each for each in split.collector.named("turn") if each.trace == trace]
    assert (turn.parent, turn.service) == (OUTER, "luftpause-dataplane")
    assert f"00-{trace}-{turn.span}-01" in split.engine.traces


def turns_told(log: Path, count: int) -> None:
    """Every event of a turn in the event log names its trace."""

    def told() -> list[dict[str, Any]]:
        lines = [line for line in log.read_text().splitlines(keepends=True) if '"line":"event"' in line]
        return [json.loads(line) for line in lines if line.endswith("\n")]

    # It is written by a thread of its own, after the turn.
    assert soon(lambda: [each["kind"] for each in told()].count("TurnFinished") == count)
    events = told()
    arrived = [each["event"]["trace"]["trace"] for each in events if each["kind"] == "TurnArrived"]
    assert arrived == [TRACE] * count
    for kind in ("FirstTokenSeen", "TurnFinished"):
        assert [each["event"]["trace_id"] for each in events if each["kind"] == kind] == [TRACE] * count


def test_a_run_goes_on_in_its_trace_after_a_kill(tmp_path: Path) -> None:
    with ExitStack() as stack:
        made = traced_set_up(tmp_path, stack, tool_delay="5")
        for service in ("scheduler", "dataplane", "runtime"):
            made.start(service)

        async def begin() -> str:
            async with made.client() as client:
                return await spawned(client, LOOK, f"00-{TRACE}-{OUTER}-01")

        handle = asyncio.run(begin())
        (before, *_) = made.arrived("chat", 1)
        assert soon(lambda: any(b'"tools/call"' in body for body in made.tools.bodies), WAIT_S)
        made.programs["runtime"].kill()
        made.start("runtime")

        async def end() -> None:
            async with made.client() as client:
                await finished(client, handle)

        asyncio.run(end())
        (run,) = made.arrived("invoke_agent", 1)
        made.arrived("chat", 2)
        (call,) = made.arrived("execute_tool", 1)
        assert (run.trace, run.parent) == (TRACE, OUTER)
        assert {each.parent for each in (*made.collector.named("chat"), call)} == {run.span}
        assert before.span != made.collector.named("chat")[-1].span
        assert run.began <= before.began


def test_counts_are_sent_too(split: Traced) -> None:
    wanted = {
        "luftpause-scheduler": "luftpause_scheduler_decisions",
        "luftpause-dataplane": "luftpause_dataplane_open_turns",
        "luftpause-runtime": "luftpause_runtime_running_runs",
    }
    for service, name in wanted.items():
        assert soon(partial(split.counted, service, name), WAIT_S), split.collector.metrics


def test_a_collector_that_is_away_or_refuses_disturbs_nobody(tmp_path: Path) -> None:
    with ExitStack() as stack:
        made = traced_set_up(tmp_path, stack)
        made.collector.status = 400
        made.start("scheduler")
        made.start("dataplane")
        made.collector.url = "http://127.0.0.1:9"
        made.start("runtime")

        async def story() -> None:
            async with made.client() as client:
                await finished(client, await spawned(client, LOOK))

        asyncio.run(story())

        def dropped(service: str) -> float:
            with urllib.request.urlopen(made.programs[service].url(service) + "/metrics", timeout=WAIT_S) as answer:
                lines = answer.read().decode().splitlines()
            (line,) = [each for each in lines if each.startswith("luftpause_telemetry_dropped_spans_total")]
            return float(line.rpartition(" ")[2])

        assert soon(lambda: dropped("scheduler") > 0 and dropped("dataplane") > 0, WAIT_S)
        assert dropped("runtime") >= 0
        assert [made.programs[service].interrupt() for service in ("runtime", "dataplane", "scheduler")] == [0, 0, 0]
        assert "spans_dropped" in made.programs["dataplane"].output.read_text()


PROGRAM = """
import sys
from luftpause.__main__ import run
try:
    run()
finally:
    names = ("opentelemetry.sdk", "opentelemetry.exporter", "google.protobuf", "requests", "luftpause.adapters.otlp")
    print("LOADED", sorted(name for name in names if name in sys.modules), flush=True)
"""


def test_without_the_variable_nothing_of_it_is_imported(tmp_path: Path) -> None:
    config = write(tmp_path, FREE_PORTS)
    ready = tmp_path / "up.json"
    env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    command = [sys.executable, "-c", PROGRAM, "up", "--config", config, "--ready-file", str(ready)]
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert soon(ready.exists, WAIT_S)
        finally:
            process.terminate()
        out, err = process.communicate(timeout=30)
    assert b"LOADED []" in out, (out, err)


HIDDEN = """
import sys
sys.modules["opentelemetry.sdk"] = None
from luftpause.__main__ import run
run()
"""


@pytest.mark.parametrize("service", ["up", "scheduler", "runtime"])
def test_without_the_extra_a_start_says_what_to_install(tmp_path: Path, service: str) -> None:
    config = write(tmp_path, FREE_PORTS)
    env = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    command = [sys.executable, "-c", HIDDEN, service, "--config", config]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=WAIT_S, check=False)
    (line,) = [each for each in done.stderr.splitlines() if each.startswith("error:")]
    assert done.returncode != 0
    assert "pip install 'luftpause[otel]'" in line
