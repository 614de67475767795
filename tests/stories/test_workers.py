"""Several processes on one port: any of them knows any run, and none of them is missed for long."""

import contextlib
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stories.programs import END_S_MAX, Program, launch, running
from stories.raw_wire import CHAT, Answer, Engine, ask, chat_body, soon, status, whole
from stories.set_ups import FREE_PORTS, MODEL, free_port, replicas, write

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform != "linux", reason="several workers on one port need Linux"),
]

TURNS_MAX = 100
CHANGES = 10
"""So often a run has to change its worker. Among the turns above it does so less often once in 10^17 tries."""
AGENTS = 6
STREAMS_MAX = 60
GRACE = "\n[scheduler]\nport = 0\nhttp_port = 0\nlink_grace = '1s'\n[dataplane]\nport = 0\n[runtime]\nport = 0\n"
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":%b}]}\n\n'
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
END = EVENT % (b"end", b'"stop"') + b"data: [DONE]\n\n"

Message = dict[str, object]


def lines(program: Program) -> list[dict[str, object]]:
    """Return what the program logged so far."""
    found = (line for line in program.output.read_text(encoding="utf-8").splitlines() if line.startswith("{"))
    return [json.loads(line) for line in found if line.endswith("}")]


def logged(program: Program, event: str) -> list[dict[str, object]]:
    return [line for line in lines(program) if line["event"] == event]


def pids(program: Program) -> dict[int, int]:
    """Return the process of each worker, the latest one."""
    return {int(str(line["worker"])): int(str(line["worker_pid"])) for line in logged(program, "worker_ready")}


def changes_of(program: Program, run: str) -> int:
    """Return how often a run's next turn came by another worker: a turn's id begins with its worker's name."""
    placed = [line for line in logged(program, "turn_placed") if line["run"] == run]
    return sum(
        one != other for one, other in itertools.pairwise(str(line["turn"]).partition("_")[0] for line in placed)
    )


def requests_total(text: str) -> float:
    return sum(
        float(line.rpartition(" ")[2]) for line in re.findall(r"(?m)^luftpause_dataplane_requests_total.*$", text)
    )


def metrics(program: Program, *headers: str) -> Answer:
    return ask(program.url("dataplane"), b"", *headers, start="GET /metrics HTTP/1.1")


def calls(body: bytes) -> bytes:
    """Answer with a tool call whose id was never seen, or with text that was never said to whoever brings no tool."""
    number = next(NUMBERS)
    message: Message = {"role": "assistant", "content": f"answer {number}"}
    if b'"tool_call_id"' in body or b"call me" in body:
        function = {"name": "look", "arguments": "{}"}
        message["tool_calls"] = [{"id": f"call-{number}-of-one-run", "type": "function", "function": function}]
    finish = "tool_calls" if "tool_calls" in message else "stop"
    return whole(json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish}]}).encode())


NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    directory = tmp_path_factory.mktemp("workers")
    with Engine(reply=calls) as engine:
        config = write(directory, FREE_PORTS, replicas(engine.url))
        arguments = ("up", "--config", config, "--workers", "2", "--log-level", "debug")
        with running(directory, "up", *arguments) as program:
            assert soon(lambda: bool(status(program.url("scheduler"))["replicas"][0]["healthy"]))
            yield program


def answered(door: str, messages: list[Message], *headers: str, **members: str) -> tuple[str, Message]:
    """Take a turn on a connection of its own and return its run and the message."""
    answer = ask(door, json.dumps({"model": MODEL, "messages": messages, **members}).encode(), *headers)
    assert answer.status == 200, answer
    message: Message = json.loads(answer.body)["choices"][0]["message"]
    return answer.headers["x-luftpause-run-id"], message


def by_header(messages: list[Message], _: Message) -> list[Message]:
    return messages


def by_tool_call(messages: list[Message], said: Message) -> list[Message]:
    tool_calls = said["tool_calls"]
    assert isinstance(tool_calls, list)
    return [{"role": "user", "content": "anew"}, {"role": "tool", "tool_call_id": tool_calls[0]["id"], "content": "x"}]


def by_prefix(messages: list[Message], said: Message) -> list[Message]:
    return [*messages, said, {"role": "user", "content": "and then?"}]


@pytest.mark.parametrize(
    ("first", "following", "headers", "members"),
    [
        ("hello", by_header, ["x-luftpause-run-id: one-for-all"], {}),
        ("hello", by_header, ["x-session-id: a-session"], {}),
        ("hello", by_header, [], {"prompt_cache_key": "a key"}),
        ("call me", by_tool_call, [], {}),
        ("tell me", by_prefix, [], {}),
    ],
    ids=["run header", "session header", "cache key", "echoed tool calls", "message prefix"],
)
def test_turns_that_land_on_different_workers_are_of_one_run(
    up: Program,
    first: str,
    following: Callable[[list[Message], Message], list[Message]],
    headers: list[str],
    members: dict[str, str],
) -> None:
    messages: list[Message] = [{"role": "user", "content": first}]
    runs = set()
    for _ in range(TURNS_MAX):
        run, said = answered(up.url("dataplane"), messages, *headers, **members)
        runs.add(run)
        messages = following(messages, said)
        if changes_of(up, run) >= CHANGES:
            break
    assert len(runs) == 1, "a worker did not recognise the run"
    assert changes_of(up, runs.pop()) >= CHANGES


@pytest.mark.parametrize(
    ("first", "following"),
    [("call me", by_tool_call), ("tell me", by_prefix)],
    ids=["echoed tool calls", "message prefix"],
)
def test_agents_that_come_all_at_once_are_told_apart_by_every_worker(
    up: Program, first: str, following: Callable[[list[Message], Message], list[Message]]
) -> None:
    """Both workers are busy with others' turns, so that a next turn may overtake the report of the last."""

    def work(agent: int) -> set[str]:
        messages: list[Message] = [{"role": "user", "content": f"{first}, {agent}"}]
        runs = set()
        for _ in range(CHANGES):
            run, said = answered(up.url("dataplane"), messages)
            runs.add(run)
            messages = following(messages, said)
        return runs

    with ThreadPoolExecutor(AGENTS) as agents:
        runs = [*agents.map(work, range(AGENTS))]
    assert [len(each) for each in runs] == [1] * AGENTS, "a worker did not recognise a run"
    assert len(set.union(*runs)) == AGENTS
    assert any(changes_of(up, run) for each in runs for run in each)


def test_whichever_worker_is_asked_it_tells_of_all(up: Program) -> None:
    before = requests_total(metrics(up).body.decode())
    for _ in range(20):
        assert ask(up.url("dataplane"), chat_body()).status == 200
    totals = {requests_total(metrics(up).body.decode()) for _ in range(20)}
    assert totals == {before + 20}


def test_status_names_the_workers_and_their_lines_do(up: Program) -> None:
    peers = status(up.url("scheduler"))["peers"]
    assert [str(peer["name"]).partition("_")[0] for peer in peers] == ["dp1", "dp2"]
    assert all(peer["connected"] for peer in peers)
    assert {line["worker"] for line in logged(up, "link_up")} == {1, 2}


@dataclass
class Streaming(Engine):
    """An engine whose answers begin, and end once `release` is set."""

    release: threading.Event = field(default_factory=threading.Event)

    def answer(self, connection: socket.socket, head: bytes, body: bytes) -> bool:
        if not head.startswith(b"POST"):
            return super().answer(connection, head, body)
        connection.sendall(HEAD + EVENT % (b"begin", b"null"))
        self.release.wait(60)
        connection.sendall(END)
        return False


@dataclass
class Stream:
    """A client in the middle of its stream."""

    connection: socket.socket
    received: bytes = b""

    def rest(self) -> bytes:
        """Return all that was received once the door has closed the connection, however."""
        with self.connection, contextlib.suppress(ConnectionResetError):
            while piece := self.connection.recv(65536):
                self.received += piece
        return self.received


def begin(door: str, run: str) -> Stream:
    """Begin a stream and return once its first event is here."""
    host, port = door.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    body = json.dumps({"model": MODEL, "stream": True, "messages": [{"role": "user", "content": run}]}).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nhost: {host}\r\nx-luftpause-run-id: {run}\r\nconnection: close\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    stream = Stream(connection)
    while b"begin" not in stream.received:
        piece = connection.recv(65536)
        assert piece, stream.received
        stream.received += piece
    return stream


def open_turns(program: Program) -> Counter[str]:
    """Return how many turns each worker has open."""
    peers = status(program.url("scheduler"))["peers"]
    return Counter({str(peer["name"]).partition("_")[0]: int(str(peer["open_turns"])) for peer in peers})


def begin_on_both(program: Program) -> dict[str, Stream]:
    """Begin streams until each worker carries one; return them by run."""
    streams: dict[str, Stream] = {}
    while len(+open_turns(program)) < 2:
        assert len(streams) < STREAMS_MAX, open_turns(program)
        run = f"run-{len(streams)}"
        streams[run] = begin(program.url("dataplane"), run)
    return streams


def test_a_worker_killed_in_mid_stream_ends_its_own_streams_and_comes_back(tmp_path: Path) -> None:
    engine = Streaming()
    with engine:
        config = write(tmp_path, GRACE, replicas(engine.url))
        with running(tmp_path, "up", "up", "--config", config, "--workers", "2", "--log-level", "debug") as program:
            assert soon(lambda: bool(status(program.url("scheduler"))["replicas"][0]["healthy"]))
            streams = begin_on_both(program)
            placed = {str(line["run"]): str(line["turn"])[:3] for line in logged(program, "turn_placed")}
            lost = {run for run in streams if placed[run] == "dp1"}
            before = pids(program)
            os.kill(before[1], signal.SIGKILL)
            for run in lost:
                assert b"[DONE]" not in streams[run].rest()
            assert soon(lambda: pids(program)[1] != before[1], 30.0), "it did not come back"
            assert pids(program)[2] == before[2]
            engine.release.set()
            for run in streams.keys() - lost:
                assert b"[DONE]" in streams[run].rest()
            for run in lost:
                again = ask(program.url("dataplane"), chat_body(), f"x-luftpause-run-id: {run}")
                assert (again.status, again.headers["x-luftpause-run-id"]) == (200, run)
            assert soon(lambda: not status(program.url("scheduler"))["replicas"][0]["in_flight"]), "a slot was lost"
            assert soon(lambda: [*open_turns(program)] == ["dp1", "dp2"])
            (failed,) = logged(program, "worker_failed")
            assert failed["why"] == "ended while it served (signal 9)"


def test_a_signal_lets_every_worker_drain(tmp_path: Path) -> None:
    engine = Streaming()
    with engine:
        config = write(tmp_path, FREE_PORTS, replicas(engine.url))
        program = launch(tmp_path, "up", "up", "--config", config, "--workers", "2", "--log-level", "debug")
        try:
            assert soon(lambda: bool(status(program.url("scheduler"))["replicas"][0]["healthy"]))
            streams = begin_on_both(program)
            program.process.terminate()
            assert soon(lambda: not accepts(program.url("dataplane")))
            engine.release.set()
            assert all(b"[DONE]" in stream.rest() for stream in streams.values())
            assert program.process.wait(END_S_MAX) == 0
            assert not any(Path(f"/proc/{pid}").exists() for pid in pids(program).values())
            assert program.output.read_text(encoding="utf-8").count("stopping; once more to abort") == 1
        finally:
            program.kill()


def accepts(door: str) -> bool:
    host, port = door.removeprefix("http://").split(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def test_workers_do_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    config = write(tmp_path, FREE_PORTS, replicas("http://127.0.0.1:9"))
    program = launch(tmp_path, "up", "up", "--config", config, "--workers", "2", "--log-level", "info")
    try:
        found = pids(program)
        assert sorted(found) == [1, 2]
        program.kill()
        assert soon(lambda: not any(Path(f"/proc/{pid}").exists() for pid in found.values()))
        assert not accepts(program.url("dataplane"))
    finally:
        program.kill()


def test_a_door_of_its_own_with_workers_asks_for_the_token_and_keeps_its_port(tmp_path: Path) -> None:
    secret, link, http = {"LUFTPAUSE_TOKEN": "open-sesame"}, free_port(), free_port()
    key = "authorization: Bearer open-sesame"
    with Engine(reply=calls) as engine:
        config = write(
            tmp_path,
            replicas(engine.url),
            f"[scheduler]\nport = {link}\nhttp_port = {http}\n[dataplane]\nport = 0\nworkers = 2\n",
        )
        with (
            running(tmp_path, "scheduler", "scheduler", "--config", config, env=secret),
            running(tmp_path, "dataplane", "dataplane", "--config", config, env=secret) as door,
        ):
            assert [*door.services] == ["dataplane"]
            url = door.url("dataplane")
            assert {metrics(door).status for _ in range(8)} == {401}
            assert {ask(url, chat_body(), key).status for _ in range(8)} == {200}
            assert requests_total(metrics(door, key).body.decode()) == 8
            assert {ask(url, start="GET /health HTTP/1.1").status for _ in range(8)} == {200}
            port = url.rpartition(":")[2]
            second = subprocess.run(
                [sys.executable, "-m", "luftpause", "dataplane", "--config", config, "--port", port],
                cwd=tmp_path,
                env={**os.environ, **secret},
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert second.returncode == 1
            assert f"error: dataplane.port: 127.0.0.1:{port} is already in use" in second.stderr


def test_workers_whose_token_the_scheduler_does_not_know_end_the_start_with_a_word(tmp_path: Path) -> None:
    link, http = free_port(), free_port()
    config = write(tmp_path, f"[scheduler]\nport = {link}\nhttp_port = {http}\n[dataplane]\nport = 0\nworkers = 2\n")
    with running(tmp_path, "scheduler", "scheduler", "--config", config, env={"LUFTPAUSE_TOKEN": "right"}):
        ended = subprocess.run(
            [sys.executable, "-m", "luftpause", "dataplane", "--config", config],
            cwd=tmp_path,
            env={**os.environ, "LUFTPAUSE_TOKEN": "wrong"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == 1
    assert "error: scheduler.port: " in ended.stderr
    assert "error: dataplane.workers: worker " in ended.stderr
    assert "ended before it was ready (exit status 1)" in ended.stderr
    assert "Traceback" not in ended.stderr
