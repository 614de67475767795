"""A child process that speaks the protocol, or something else."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
import uvloop
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from adapters.tools_mcp.tool_world import in_time
from luftpause.adapters import process_table
from luftpause.adapters.tools_mcp import child
from luftpause.adapters.tools_mcp.child import ANSWER_BYTES_MAX, child_streams
from luftpause.adapters.tools_mcp.child_log import LINES_PER_MINUTE_MAX
from services.launcher.launcher_world import poll

ECHO = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "long":
        padding = "x" * asked["params"]["length"]
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"padding": padding}}), flush=True)
    elif asked["method"] == "half":
        print('{"jsonrpc": "2.0", "id": 7, "result": {"said": "half \\\\ud83d a pair \\\\ud83d\\\\ude00"}}', flush=True)
    elif asked["method"] == "odd":
        print('{"jsonrpc": "2.0", "id": 8, "method": "ping", "params": 5}', flush=True)
        print('{"jsonrpc": "2.0", "id": 7, "result": [1, 2]}', flush=True)
        print('{"id": 7, "error": "no"}', flush=True)
    elif asked["method"] == "greet":
        print("hello there", flush=True)
        print("{}", flush=True)
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {}}), flush=True)
"""
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "w").write(str(os.getpid()))
while True:
    time.sleep(1)
"""
PARENT = """
import subprocess, sys, os
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[1], "w").write(str(child.pid))
sys.stdin.read()
"""

HELD = """
import os, subprocess, sys
for apart in (False, True):
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=apart)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(left.pid))
os.rename(sys.argv[1] + ".new", sys.argv[1])
sys.stdin.read()
print("goodbye", file=sys.stderr)
"""
LAST_WORDS = """
import os
import signal
import sys
sys.stdin.read()
for number in range(5000):
    sys.stderr.write(f"it hurts {number}\\n")
"""


async def heard(method: str, **params: int) -> list[object]:
    """What a child answers to one request, until the answer that says nothing."""
    async with child_streams("s", [sys.executable, "-c", ECHO], {"A": "1"}) as (read, write):
        request = JSONRPCRequest(jsonrpc="2.0", id=7, method=method, params=dict(params))
        await write.send(SessionMessage(request))
        said: list[object] = []
        while True:
            item = await read.receive()
            assert isinstance(item, SessionMessage)
            said.append(item.message)
            if isinstance(item.message, JSONRPCResponse) and not item.message.result:
                return said


def test_what_a_stopped_child_said_last_is_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for bound in ("_GRACE_S", "_LAST_WORDS_S", "_SILENCE_S"):
        monkeypatch.setattr(child, bound, 3600.0)

    async def use() -> None:
        async with child_streams("s", [sys.executable, "-c", LAST_WORDS], {}):
            pass

    with caplog.at_level(logging.INFO, "luftpause.tools"):
        in_time(use())
    (ended,) = [entry for entry in caplog.records if entry.message == "tool_server_ended"]
    assert ended.__dict__["last_line"] == "it hurts 4999"
    (left_out,) = [entry for entry in caplog.records if entry.message == "tool_server_lines_left_out"]
    assert left_out.__dict__["lines"] == 5000 - LINES_PER_MINUTE_MAX


def test_lines_that_are_no_messages_are_passed_over() -> None:
    (answer,) = in_time(heard("greet"))
    assert isinstance(answer, JSONRPCResponse)


def test_half_of_a_surrogate_pair_costs_no_answer() -> None:
    answer, _ = in_time(heard("half"))
    assert isinstance(answer, JSONRPCResponse)
    assert answer.result == {"said": "half \ufffd a pair \U0001f600"}


def test_an_answer_that_is_no_message_is_an_error_of_its_call() -> None:
    *answers, _ = in_time(heard("odd"))
    assert len(answers) == 2, "what asks is no answer"
    for answer in answers:
        assert isinstance(answer, JSONRPCError)
        assert (answer.id, answer.error.message) == (7, "the answer is no message of the protocol")


@pytest.mark.parametrize("length", [ANSWER_BYTES_MAX, 3 * ANSWER_BYTES_MAX])
def test_a_message_beyond_measure_is_an_error_of_its_call(length: int) -> None:
    first, _ = in_time(heard("long", length=length))
    assert isinstance(first, JSONRPCError)
    assert (first.id, first.error.message) == (7, f"the answer is longer than {ANSWER_BYTES_MAX} bytes")


def test_a_child_that_ends_ends_what_is_heard() -> None:
    async def use() -> None:
        async with child_streams("s", [sys.executable, "-c", "pass"], {}) as (read, _):
            with pytest.raises(anyio.EndOfStream):
                await read.receive()

    in_time(use())


def test_a_child_that_will_not_end_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(child, "_GRACE_S", 0.1)
    path = tmp_path / "pid"

    async def use() -> int:
        async with child_streams("s", [sys.executable, "-c", STUBBORN, str(path)], {}):
            while True:
                if path.exists() and (text := path.read_text()):
                    return int(text)
                await asyncio.sleep(0.01)

    until_gone(in_time(use()))


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_child_whose_pipes_somebody_else_holds_is_stopped_as_soon_as_it_has_ended(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    for bound in ("_GRACE_S", "_LAST_WORDS_S"):
        monkeypatch.setattr(child, bound, 3600.0)
    monkeypatch.setattr(child, "_SILENCE_S", 1.0)
    path = tmp_path / "pid"

    async def use() -> int:
        async with asyncio.timeout(60), child_streams("s", [sys.executable, "-c", HELD, str(path)], {}):
            while True:
                if path.exists():
                    return int(path.read_text())
                await asyncio.sleep(0.01)

    with caplog.at_level(logging.INFO, "luftpause.tools"), asyncio.Runner(loop_factory=loop_factory) as runner:
        left = runner.run(use())
    os.kill(left, signal.SIGKILL)  # it is in a session of its own, out of reach
    (ended,) = [entry for entry in caplog.records if entry.message == "tool_server_ended"]
    assert ended.__dict__["last_line"] == "goodbye"


def test_what_a_child_started_ends_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(child, "_GRACE_S", 0.3)
    path = tmp_path / "pid"

    async def use() -> int:
        async with child_streams("s", [sys.executable, "-c", PARENT, str(path)], {}):
            while True:
                if path.exists() and (text := path.read_text()):
                    return int(text)
                await asyncio.sleep(0.01)

    until_gone(in_time(use()))


def until_gone(pid: int) -> None:
    """Return once nothing of a process is left but a name that nobody has asked after."""
    in_time(poll(lambda: process_table.row_of(pid) is None))


def test_a_program_that_is_not_there_cannot_be_started() -> None:
    async def use() -> None:
        async with child_streams("s", ["/no/such/program"], {}):
            raise AssertionError("there is nothing to start")

    with pytest.raises(FileNotFoundError):
        in_time(use())


NOISE_LINES = 2000
NOISY = f"""
import os, sys
sys.stdin.readline()
answer = b'{{"jsonrpc": "2.0", "id": %d, "result": {{}}}}\\n'
os.write(1, answer % 7 + b"x\\n" * {NOISE_LINES} + answer % 8)
sys.stdin.read()
"""


def test_a_child_that_floods_its_output_leaves_everybody_their_turn() -> None:
    async def live() -> int:
        async with child_streams("s", [sys.executable, "-c", NOISY], {}) as (read, write):
            await write.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=7, method="x", params={})))
            await read.receive()
            last = asyncio.create_task(read.receive())
            turns = 0
            while not last.done():
                await asyncio.sleep(0)
                turns += 1
            return turns

    assert in_time(live()) > NOISE_LINES / 100
