"""Engines on demand with a real model: five phases, two that take turns, what the way costs, and runs that come back.

Run by scripts/swap. Needs the extra `local` and the small model; exits with 1 when a phase does not do what it says.
"""

import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from luftpause.adapters.llama_cpp.discover import find_local_engine, find_local_model

WAIT_S = 120.0
TTL_S = 2
WARM_TURNS = 300
COLD_STARTS = 7
RETURNS = 3
RETURN_ITEMS = 90
FIRST_PORT = 21000
FAKE = '["${python}", "-m", "luftpause", "fake-engine", "--port", "${port}", "--model", "${model}", "--token-ms", "0"]'

Json = dict[str, Any]


class PhaseFailedError(Exception):
    """A phase did not do what it says."""


@dataclass(frozen=True)
class Up:
    """A running `luftpause up`."""

    door: str
    status: str

    def turn(self, model: str, *, tokens: int = 1) -> tuple[int, Json, float]:
        """Take a turn; return its status, its answer and how long it took, seconds."""
        body = {"model": model, "messages": [{"role": "user", "content": "Name a river."}], "max_tokens": tokens}
        began = time.perf_counter()
        status, answer = call(self.door, "POST", "/v1/chat/completions", body)
        return status, answer, time.perf_counter() - began

    def state(self, model: str) -> str:
        """Return what a model is up to."""
        return str(call(self.status, "GET", f"/models/{model}", None)[1]["state"])

    def until(self, model: str, state: str) -> None:
        """Return once a model is in a state."""
        wait(lambda: self.state(model) == state, f"{model} is not {state}")


def call(url: str, method: str, path: str, body: Mapping[str, object] | None) -> tuple[int, Json]:
    """Ask on a connection of its own."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=WAIT_S)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"content-type": "application/json"} if content else {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def wait(holds: Callable[[], bool], otherwise: str) -> None:
    """Return once it holds."""
    deadline = time.monotonic() + WAIT_S
    while not holds():
        if time.monotonic() > deadline:
            raise PhaseFailedError(otherwise)
        time.sleep(0.01)


def check(holds: bool, otherwise: str) -> None:
    """Fail the phase unless it holds."""
    if not holds:
        raise PhaseFailedError(otherwise)


@contextmanager
def luftpause(folder: Path, config: str) -> Iterator[Up]:
    """Everything in one process, for the length of a block."""
    file, ready = folder / "luftpause.toml", folder / "ready.json"
    file.write_text("[dataplane]\nport = 0\n[runtime]\nport = 0\n[scheduler]\nport = 0\nhttp_port = 0\n" + config)
    ready.unlink(missing_ok=True)
    argv = (sys.executable, "-m", "luftpause", "up", "--config", str(file), "--ready-file", str(ready))
    with (folder / "up.log").open("ab") as log, subprocess.Popen(argv, cwd=folder, stdout=log, stderr=log) as process:
        try:
            wait(ready.exists, f"luftpause did not start; see {folder / 'up.log'}")
            services = json.loads(ready.read_text())
            yield Up(door=services["dataplane"], status=services["scheduler"])
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(WAIT_S)


def five_phases(up: Up) -> None:
    """Cold, warm, unknown name, unload when idle, start again."""
    check(up.state("a") == "down", "the model is up before anybody asked")
    status, answer, cold_s = up.turn("a", tokens=8)
    check(status == 200, f"cold: {status} {answer}")
    print(f"1 cold     {cold_s * 1000:8.0f} ms   start, load, first answer of 8 tokens")
    status, answer, warm_s = up.turn("a", tokens=8)
    check(status == 200, f"warm: {status} {answer}")
    print(f"2 warm     {warm_s * 1000:8.0f} ms   the same again")
    status, answer, unknown_s = up.turn("nobody-has-this")
    check(status == 404 and answer["error"]["code"] == "unknown_model", f"unknown name: {status} {answer}")
    print(f"3 unknown  {unknown_s * 1000:8.0f} ms   404, and nothing started")
    began = time.perf_counter()
    up.until("a", "down")
    print(f"4 idle     {(time.perf_counter() - began) * 1000:8.0f} ms   until it was unloaded, its TTL is {TTL_S} s")
    status, answer, again_s = up.turn("a", tokens=8)
    check(status == 200, f"again: {status} {answer}")
    print(f"5 again    {again_s * 1000:8.0f} ms   start, load, first answer")


def take_turns(up: Up) -> None:
    """A B A B A B together, one of the two up at a time."""
    up.until("a", "down")
    loads: list[str] = []
    watching = threading.Event()
    watcher = threading.Thread(target=_watch, args=(up, loads, watching))
    watcher.start()
    began = time.perf_counter()
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda name=name: statuses.append(up.turn(name)[0])) for name in "ababab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s = time.perf_counter() - began
    watching.set()
    watcher.join()
    check(statuses == [200] * 6, f"taking turns: {statuses}")
    check(len(loads) == 2, f"taking turns: {len(loads)} loads, {loads}")
    print(f"6 a b a b a b together {took_s * 1000:8.0f} ms   {len(loads)} loads")


def _watch(up: Up, loads: list[str], done: threading.Event) -> None:
    """Write down each load that begins."""
    before: dict[str, str] = {}
    while not done.wait(0.005):
        for model in call(up.status, "GET", "/models", None)[1]["models"]:
            if model["state"] == "loading" and before.get(model["name"]) != "loading":
                loads.append(model["name"])
            before[model["name"]] = model["state"]


def warm_overhead(up: Up) -> None:
    """A turn of a model that is up, against the same of a replica that is declared."""
    took: dict[str, list[float]] = {"fake": [], "static": []}
    for name in took:
        check(up.turn(name)[0] == 200, f"{name} does not answer")
    for _ in range(WARM_TURNS):
        for name, each in took.items():
            each.append(up.turn(name)[2])
    launched, static = (statistics.median(took[name]) * 1000 for name in ("fake", "static"))
    more = launched - static
    print(f"7 warm turn, p50 of {WARM_TURNS}: {launched:.2f} ms on demand, {static:.2f} ms static, {more:+.2f} ms")


def cold_start(up: Up) -> None:
    """The first answer of a cold model, against its engine started by hand and asked until it is ready."""
    by_hand, by_us = [], []
    engine, model = find_local_engine(os.environ), find_local_model()
    assert engine is not None
    assert model is not None
    for nth in range(COLD_STARTS):
        port = FIRST_PORT + nth
        argv = engine.command(model=model, host="127.0.0.1", port=str(port), alias="a", args=())
        by_hand.append(_ready_s(argv, port))
        call(up.status, "POST", "/models/a/unload?force=true", None)
        up.until("a", "down")
        began = time.perf_counter()
        call(up.status, "POST", "/models/a/load", None)
        up.until("a", "up")
        by_us.append(time.perf_counter() - began)
    own, ours = statistics.median(by_hand) * 1000, statistics.median(by_us) * 1000
    print(f"8 cold start, p50 of {COLD_STARTS}: {ours:.0f} ms until up, {own:.0f} ms by hand, {ours - own:+.0f} ms")


def _ready_s(argv: tuple[str, ...], port: int) -> float:
    began = time.perf_counter()
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait(lambda: _is_healthy(port), "the engine by hand is not ready")
            return time.perf_counter() - began
        finally:
            process.kill()


def _is_healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()


def returning_run(url: str, folder: Path) -> None:
    """A run's second turn after its model was swapped out for another: its KV parked, and computed again."""
    seconds: dict[str, list[tuple[float, int]]] = {"off": [], "auto": []}
    for _ in range(RETURNS):
        for parking, seen in seconds.items():
            with luftpause(folder, config_of(folder, url, parking)) as up:
                seen.append(_swapped_out(up))
    off, auto = (statistics.median(each[0] for each in seen) * 1000 for seen in seconds.values())
    kept, again = (seen[-1][1] for seen in (seconds["auto"], seconds["off"]))
    check(kept > again, f"a returning run finds {kept} tokens with parking and {again} without")
    print(
        f"9 a run comes back to a swapped model, p50 of {RETURNS} from request to first token, load included: "
        f"{auto:.0f} ms parked ({kept} tokens cached), {off:.0f} ms computed again ({again} cached), {off / auto:.1f}x"
    )


def _swapped_out(up: Up) -> tuple[float, int]:
    """Let a run call a tool, another model take its room, and the run come back; return its first token's time."""
    facts = " ".join(f"Item {number} costs {number * 7 % 93} coins." for number in range(RETURN_ITEMS))
    question: Json = {"role": "user", "content": f"{facts} Look up item 3."}
    tool = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {}}}}
    body = {
        "model": "a",
        "messages": [question],
        "tools": [tool],
        "tool_choice": "required",
        "max_tokens": 64,
        "seed": 1,
    }
    status, answer = call(up.door, "POST", "/v1/chat/completions", body)
    check(status == 200, f"a run begins: {status} {answer}")
    said = answer["choices"][0]["message"]
    check(bool(said.get("tool_calls")), f"a run begins: it calls no tool: {said}")
    status, answer, _ = up.turn("b")
    check(status == 200 and up.state("a") == "down", f"the other model: {status} {answer}")
    results = [{"role": "tool", "tool_call_id": each["id"], "content": "21 coins"} for each in said["tool_calls"]]
    body = {"model": "a", "messages": [question, said, *results], "tools": [tool], "max_tokens": 1, "seed": 1}
    began = time.perf_counter()
    status, answer = call(up.door, "POST", "/v1/chat/completions", body)
    took_s = time.perf_counter() - began
    check(status == 200, f"a run comes back: {status} {answer}")
    return took_s, int(answer["usage"]["prompt_tokens_details"]["cached_tokens"])


def config_of(folder: Path, static_url: str, parking: str = "auto") -> str:
    """Return two names for the small model, one fake engine on demand and one that runs already."""
    model = find_local_model()
    if find_local_engine(os.environ) is None or model is None:
        raise PhaseFailedError("llama.cpp or the small model is missing; sh scripts/up installs both")
    real = f'backend = "llama.cpp"\nmodel_path = "{model}"\ngroup = "real"\nttl = "{TTL_S}s"\n'
    return (
        f'[launcher]\nstate_dir = "{folder}/marks"\nmin_residency = "0s"\nmemory = "8GiB"\n'
        f'max_wait = "1s"\nkv_parking = "{parking}"\n'
        '[[launcher.groups]]\nname = "real"\nswap = true\n'
        f'[[launcher.models]]\nname = "a"\n{real}[[launcher.models]]\nname = "b"\n{real}'
        f'[[launcher.models]]\nname = "fake"\nbackend = "command"\ncommand = {FAKE}\nttl = "never"\n'
        f'[[replicas]]\nname = "static"\nurl = "{static_url}"\nmodels = ["static"]\n'
    )


def main() -> int:
    """Run all phases; return 1 when one failed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ready = folder / "static.json"
        argv = [sys.executable, "-m", "luftpause", "fake-engine", "--port", "0", "--model", "static", "--token-ms", "0"]
        with subprocess.Popen([*argv, "--ready-file", str(ready)], stdout=subprocess.DEVNULL) as static:
            try:
                wait(ready.exists, "the fake engine did not start")
                url = json.loads(ready.read_text())["engine"]
                with luftpause(folder, config_of(folder, url)) as up:
                    for phase in (five_phases, take_turns, warm_overhead, cold_start):
                        phase(up)
                returning_run(url, folder)
            except PhaseFailedError as error:
                print(f"failed: {error}", file=sys.stderr)
                return 1
            finally:
                static.terminate()
    print("all phases passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
