"""Engines on demand, each service its own process, and one of them is told to end while turns wait for a model."""

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from services.launcher.launcher_world import is_alive
from stories.launching import ENGINE, WAIT_S, launcher, marked, model, models, until
from stories.programs import Program, running
from stories.set_ups import free_port, write

pytestmark = pytest.mark.timeout(180)
NEVER = '["${python}", "-c", "import time; time.sleep(600)", "${port}"]'
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}


@dataclass
class Split:
    """Scheduler, launcher and door, each its own process: the model `slow` never comes up, `a` answers for seconds."""

    directory: Path
    scheduler: Program
    launcher: Program
    door: Program

    def waiting(self) -> int:
        return int(models(self.scheduler.url("scheduler"))["slow"]["leases"]["waiting"])

    def ask(self, name: str, way: str, *, stream: bool) -> tuple[int, list[str]]:
        """Return the status of an answer and its lines."""
        said = {"input": "x"} if way == "responses" else {"messages": [{"role": "user", "content": "x"}]}
        body = {"model": name, "stream": stream, "max_tokens": 100, **said}
        url = self.door.url("dataplane") + PATHS[way]
        with httpx2.stream("POST", url, json=body, timeout=WAIT_S) as answer:
            return answer.status_code, [line for line in answer.iter_lines() if line]


@pytest.fixture
def split(tmp_path: Path) -> Iterator[Split]:
    link, http, door = (free_port() for _ in range(3))
    waiting = 'keepalive_after = "200ms"\nkeepalive = "200ms"'
    ports = f"[scheduler]\nport = {link}\nhttp_port = {http}\n[dataplane]\nport = {door}\n{waiting}\n"
    talks = ENGINE.replace("]", ', "--token-ms", "20"]')
    config = write(tmp_path, ports, launcher(memory='"10GiB"'), model("a", command=talks), model("slow", command=NEVER))
    with ExitStack() as stack:
        each = {
            name: stack.enter_context(running(tmp_path, name, name, "--config", config))
            for name in ("scheduler", "dataplane", "launcher")
        }
        made = Split(tmp_path, each["scheduler"], each["launcher"], each["dataplane"])
        until(lambda: "slow" in models(made.scheduler.url("scheduler")))
        yield made


def ends_well(answer: Future[tuple[int, list[str]]]) -> bool:
    status, lines = answer.result(WAIT_S)
    return status == 200 and lines[-1] == "data: [DONE]"


def test_a_door_that_ends_tells_each_who_waits_for_a_model_so_and_lets_answers_end(split: Split) -> None:
    with ThreadPoolExecutor(7) as pool:
        streamed = [pool.submit(split.ask, "slow", way, stream=True) for way in PATHS]
        whole = [pool.submit(split.ask, "slow", way, stream=False) for way in PATHS]
        until(lambda: split.waiting() == 6)
        answer = pool.submit(split.ask, "a", "chat", stream=True)
        until(lambda: models(split.scheduler.url("scheduler"))["a"]["leases"]["in_flight"] == 1)
        split.door.process.send_signal(signal.SIGTERM)
        for each in whole:
            status, lines = each.result(WAIT_S)
            assert (status, "shut down before anything was answered" in lines[0]) == (503, True)
        for each in streamed:
            status, lines = each.result(WAIT_S)
            assert status == 200, "signs of life came before"
            assert "shut down before anything was answered" in lines[-1]
        assert ends_well(answer)
        assert split.door.process.wait(WAIT_S) == 0
    until(lambda: split.waiting() == 0)
    assert models(split.scheduler.url("scheduler"))["slow"]["state"] == "loading", "nobody needs its room"


def test_a_launcher_that_ends_has_those_told_who_wait_for_it_and_lets_answers_end(split: Split) -> None:
    with ThreadPoolExecutor(3) as pool:
        whole = pool.submit(split.ask, "slow", "chat", stream=False)
        streamed = pool.submit(split.ask, "slow", "messages", stream=True)
        answer = pool.submit(split.ask, "a", "chat", stream=True)
        until(lambda: models(split.scheduler.url("scheduler"))["a"]["leases"]["in_flight"] == 1)
        until(lambda: split.waiting() == 2)
        pids = marked(split.directory)
        split.launcher.process.send_signal(signal.SIGTERM)
        status, lines = whole.result(WAIT_S)
        assert (status, "its launcher 'local' is shutting down" in lines[0]) == (503, True)
        assert "its launcher 'local' is shutting down" in streamed.result(WAIT_S)[1][-1]
        assert ends_well(answer)
        assert split.launcher.process.wait(WAIT_S) == 0
    assert set(pids) == {"a-1", "slow-1"}
    assert not any(map(is_alive, pids.values()))
    assert split.ask("a", "chat", stream=False)[0] == 404, "nobody serves it any more"
