"""Five phases with a real model, two models that take turns, and what the launcher's way costs.

Needs the extra `local` and the small model; exits with 1 when a phase does not do what it says.
"""

import argparse
import http.client
import itertools
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.swapbench.report import AGAIN, BY_HAND, ON_DEMAND, PARKED, STATIC, added_ms
from benchmarks.swapbench.results import SwapResults, store

from luftpause.adapters.llama_cpp.discover import find_local_engine, find_local_model
from luftpause.testkit.bench.machine import commit, describe_machine, now

WAIT_S = 120.0
TTL_S = 2
WARM_TURNS = 300
COLD_STARTS = 9
QUICK_STARTS = 25
RETURNS = 3
RETURN_ITEMS = 90
POLL_S = 0.005
FIRST_PORT = 21000
FAKE = '["${python}", "-m", "luftpause", "fake-engine", "--port", "${port}", "--model", "${model}", "--token-ms", "0"]'
QUICK = ("${python}", "-I", "-S", str(Path(__file__).with_name("quick_engine.py")), "${port}")

Json = dict[str, Any]


class PhaseFailedError(Exception):
    """A phase did not do what it says."""


@dataclass
class Figures:
    """What was measured, milliseconds; see `SwapResults`."""

    phases: dict[str, float] = field(default_factory=dict)
    cold: dict[str, list[float]] = field(default_factory=lambda: {BY_HAND: [], ON_DEMAND: []})
    quick: dict[str, list[float]] = field(default_factory=lambda: {BY_HAND: [], ON_DEMAND: []})
    warm: dict[str, list[float]] = field(default_factory=lambda: {STATIC: [], ON_DEMAND: []})
    returning: dict[str, list[float]] = field(default_factory=lambda: {AGAIN: [], PARKED: []})

    def phase(self, name: str, took_s: float, what: str) -> None:
        """Take in and print how long one took."""
        self.phases[name] = took_s * 1000
        print(f"{len(self.phases)} {name:24}{took_s * 1000:8.0f} ms   {what}")


@dataclass(frozen=True)
class Up:
    """A running `luftpause up`."""

    door: str
    status: str
    process: subprocess.Popen[bytes] | None = None

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
        time.sleep(POLL_S)


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
            yield Up(door=services["dataplane"], status=services["scheduler"], process=process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(WAIT_S)


def five_phases(up: Up, figures: Figures) -> None:
    """Cold, warm, unknown name, unload when idle, start again."""
    check(up.state("a") == "down", "the model is up before anybody asked")
    status, answer, cold_s = up.turn("a", tokens=8)
    check(status == 200, f"cold: {status} {answer}")
    figures.phase("cold", cold_s, "start, load, first answer of 8 tokens")
    status, answer, warm_s = up.turn("a", tokens=8)
    check(status == 200, f"warm: {status} {answer}")
    figures.phase("warm", warm_s, "the same again")
    status, answer, unknown_s = up.turn("nobody-has-this")
    check(status == 404 and answer["error"]["code"] == "unknown_model", f"unknown name: {status} {answer}")
    figures.phase("unknown name", unknown_s, "404, and nothing started")
    began = time.perf_counter()
    up.until("a", "down")
    figures.phase("unload when idle", time.perf_counter() - began, f"its TTL is {TTL_S} s")
    status, answer, again_s = up.turn("a", tokens=8)
    check(status == 200, f"again: {status} {answer}")
    figures.phase("start again", again_s, "start, load, first answer")


def take_turns(up: Up, figures: Figures) -> None:
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
    figures.phase("a b a b a b together", took_s, f"{len(loads)} loads")


def _watch(up: Up, loads: list[str], done: threading.Event) -> None:
    """Write down each load that begins."""
    before: dict[str, str] = {}
    while not done.wait(0.005):
        for model in call(up.status, "GET", "/models", None)[1]["models"]:
            if model["state"] == "loading" and before.get(model["name"]) != "loading":
                loads.append(model["name"])
            before[model["name"]] = model["state"]


def over_a_kill(folder: Path, config: str, figures: Figures) -> None:
    """The engine of a luftpause that was killed serves the next one at once."""
    with luftpause(folder, config) as up:
        assert up.process is not None
        check(up.turn("a")[0] == 200, "the model does not answer")
        up.process.kill()
        up.process.wait(WAIT_S)
    with luftpause(folder, config) as up:
        check(up.state("a") == "up", "its engine was not adopted")
        status, answer, took_s = up.turn("a", tokens=8)
        check(status == 200, f"after a kill: {status} {answer}")
        figures.phase("after a kill -9", took_s, "the engine was adopted")


def warm_overhead(up: Up, figures: Figures) -> None:
    """A turn of a model that is up, against the same of a replica that is declared."""
    models = {ON_DEMAND: "fake", STATIC: "static"}
    for model in models.values():
        check(up.turn(model)[0] == 200, f"{model} does not answer")
    for _ in range(WARM_TURNS):
        for name, model in models.items():
            figures.warm[name].append(up.turn(model)[2] * 1000)
    _show("warm turn", figures.warm, STATIC)


def cold_starts(up: Up, figures: Figures) -> None:
    """The first answer of a cold model, against its engine started by hand, asked until it is ready, and then that."""
    engine, model = find_local_engine(os.environ), find_local_model()
    assert engine is not None
    assert model is not None
    port = itertools.count(FIRST_PORT)
    for _ in range(COLD_STARTS):
        at = next(port)
        argv = engine.command(model=model, host="127.0.0.1", port=str(at), alias="a", args=())
        _cold_round(up, "a", (argv, at), figures.cold)
    _show("cold start", figures.cold, BY_HAND)
    for _ in range(QUICK_STARTS):
        at = next(port)
        argv = (*(word.replace("${python}", sys.executable) for word in QUICK[:-1]), str(at))
        _cold_round(up, "quick", (argv, at), figures.quick)
    _show("start of a quick engine", figures.quick, BY_HAND)


def _cold_round(up: Up, model: str, by_hand: tuple[tuple[str, ...], int], series: dict[str, list[float]]) -> None:
    argv, port = by_hand
    series[BY_HAND].append(_by_hand_s(argv, port, model) * 1000)
    call(up.status, "POST", f"/models/{model}/unload?force=true", None)
    up.until(model, "down")
    status, answer, took_s = up.turn(model)
    check(status == 200, f"cold start: {status} {answer}")
    series[ON_DEMAND].append(took_s * 1000)


def _show(what: str, series: Mapping[str, list[float]], to: str) -> None:
    medians = ", ".join(f"{statistics.median(each):.2f} ms {name}" for name, each in series.items())
    print(f"{what}, p50 of {len(series[to])}: {medians}, {added_ms(series, to):+.2f} ms in the median of the rounds")


def _by_hand_s(argv: tuple[str, ...], port: int, model: str) -> float:
    began = time.perf_counter()
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait(lambda: _is_healthy(port), "the engine by hand is not ready")
            url = f"http://127.0.0.1:{port}"
            check(Up(door=url, status=url).turn(model)[0] == 200, "the engine by hand does not answer")
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


def returning_run(url: str, folder: Path, figures: Figures, other: Path | None) -> None:
    """A run's second turn after its model was swapped out for another: its KV parked, and computed again."""
    ways = {AGAIN: "off", PARKED: "auto"}
    cached: dict[str, int] = {}
    for _ in range(RETURNS):
        for name, parking in ways.items():
            with luftpause(folder, config_of(folder, url, other, parking)) as up:
                took_s, cached[name] = _swapped_out(up)
            figures.returning[name].append(took_s * 1000)
    check(cached[PARKED] > cached[AGAIN], f"a returning run finds in its cache: {cached}")
    medians = {name: statistics.median(each) for name, each in figures.returning.items()}
    print(
        f"a run comes back to a swapped model, p50 of {RETURNS}, load included: {medians[PARKED]:.0f} ms parked, "
        f"{medians[AGAIN]:.0f} ms computed again, {medians[AGAIN] / medians[PARKED]:.1f}x"
    )


def _swapped_out(up: Up) -> tuple[float, int]:
    """Let a run call a tool, another model take its room, and the run come back; return its first token's time."""
    facts = " ".join(f"Item {number} costs {number * 7 % 93} coins." for number in range(RETURN_ITEMS))
    question: Json = {"role": "user", "content": f"{facts} Look up item 3."}
    tool = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {}}}}
    asked: Json = {"model": "a", "messages": [question], "tools": [tool], "seed": 1}
    calling = asked | {"tool_choice": "required", "max_tokens": 64}
    status, answer = call(up.door, "POST", "/v1/chat/completions", calling)
    check(status == 200, f"a run begins: {status} {answer}")
    said = answer["choices"][0]["message"]
    check(bool(said.get("tool_calls")), f"a run begins: it calls no tool: {said}")
    status, answer, _ = up.turn("b")
    check(status == 200 and up.state("a") == "down", f"the other model: {status} {answer}")
    results = [{"role": "tool", "tool_call_id": each["id"], "content": "21 coins"} for each in said["tool_calls"]]
    began = time.perf_counter()
    back = asked | {"messages": [question, said, *results], "max_tokens": 1}
    status, answer = call(up.door, "POST", "/v1/chat/completions", back)
    took_s = time.perf_counter() - began
    check(status == 200, f"a run comes back: {status} {answer}")
    return took_s, int(answer["usage"]["prompt_tokens_details"]["cached_tokens"])


def config_of(folder: Path, static_url: str, other: Path | None, parking: str = "auto") -> str:
    """Return the small model and another one, one fake engine on demand and one that runs already.

    Without another one it is the small model under another name.
    """
    model = find_local_model()
    if find_local_engine(os.environ) is None or model is None:
        raise PhaseFailedError("llama.cpp or the small model is missing; sh scripts/up installs both")
    real = f'backend = "llama.cpp"\ngroup = "real"\nttl = "{TTL_S}s"\n'
    files = {"a": model, "b": model if other is None else other.resolve()}
    both = "".join(
        f'[[launcher.models]]\nname = "{name}"\nmodel_path = "{path}"\n{real}' for name, path in files.items()
    )
    return (
        f'[launcher]\nmodel_dir = "{files["b"].parent}"\nstate_dir = "{folder}/marks"\nmin_residency = "0s"\n'
        f'memory = "8GiB"\nmax_wait = "1s"\nkv_parking = "{parking}"\n'
        '[[launcher.groups]]\nname = "real"\nswap = true\n'
        f"{both}"
        f'[[launcher.models]]\nname = "fake"\nbackend = "command"\ncommand = {FAKE}\nttl = "never"\n'
        f'[[launcher.models]]\nname = "quick"\nbackend = "command"\ncommand = {json.dumps(QUICK)}\nttl = "never"\n'
        f'[[replicas]]\nname = "static"\nurl = "{static_url}"\nmodels = ["static"]\n'
    )


def main() -> int:
    """Run all phases; return 1 when one failed."""
    parser = argparse.ArgumentParser(prog="swap.py", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="store the run")
    parser.add_argument(
        "--other", type=Path, metavar="GGUF", help="a second model to swap with, in place of a second name"
    )
    options = parser.parse_args()
    machine, figures = describe_machine(), Figures()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ready = folder / "static.json"
        argv = [sys.executable, "-m", "luftpause", "fake-engine", "--port", "0", "--model", "static", "--token-ms", "0"]
        with subprocess.Popen([*argv, "--ready-file", str(ready)], stdout=subprocess.DEVNULL) as static:
            try:
                wait(ready.exists, "the fake engine did not start")
                url = json.loads(ready.read_text())["engine"]
                config = config_of(folder, url, options.other)
                with luftpause(folder, config) as up:
                    for phase in (five_phases, take_turns, warm_overhead, cold_starts):
                        phase(up, figures)
                over_a_kill(folder, config, figures)
                returning_run(url, folder, figures, options.other)
            except PhaseFailedError as error:
                print(f"failed: {error}", file=sys.stderr)
                return 1
            finally:
                static.terminate()
    load_after = os.getloadavg()[0]
    print(f"all phases passed; load average {machine.load_before:.1f} before, {load_after:.1f} after")
    if options.json:
        run = SwapResults(
            when=now(),
            commit=commit(),
            machine=machine,
            load_after=load_after,
            phases=figures.phases,
            cold=figures.cold,
            quick=figures.quick,
            warm=figures.warm,
            returning=figures.returning,
        )
        store(run, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
