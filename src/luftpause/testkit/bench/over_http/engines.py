"""The engines of a bench over HTTP: fakes with a scenario's figures, or llama.cpp's server with the small model."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from luftpause.adapters.llama_cpp.discover import find_local_engine, find_local_model
from luftpause.testkit.bench.over_http.children import Child, free_port, wait_until
from luftpause.testkit.bench.over_http.doors import AbsentError, answers
from luftpause.testkit.sim.scenario import Scenario

READY_S: Final = 60.0
STREAM_INTERVAL: Final = 16
"""Tokens in an event of a fake engine's stream: a bench with two cores has no time for each of them."""
MODEL: Final = "fake-1b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Engines that run: base URLs, what they are to luftpause, what they serve, and their processes."""

    urls: tuple[str, ...]
    kind: str
    model: str
    real: bool
    children: tuple[Child, ...]


@contextmanager
def fake_engines(scenario: Scenario, which: str, *, speed: float, folder: Path) -> Iterator[Pool]:
    """Run a scenario's replicas, so many times as fast.

    Args:
        scenario: whose replicas.
        which: the same by name or file.
        speed: of time.
        folder: for logs.
    """
    factors = {pace.replica: pace.factor for pace in scenario.paces}
    commands = []
    for number in range(scenario.replicas):
        command = [sys.executable, "-m", "luftpause", "fake-engine", "--port", "0", "--model", MODEL]
        command += ["--figures", which, "--speedup", f"{speed * factors.get(number, 1.0):g}", "--seed", str(number)]
        command += ["--stream-interval", str(STREAM_INTERVAL), "--ready-file", str(folder / f"engine-{number}.json")]
        commands.append(command)
    with _running(commands, folder) as children:
        urls = []
        for number, child in enumerate(children):
            ready = folder / f"engine-{number}.json"
            _await(child, ready)
            urls.append(json.loads(ready.read_text(encoding="utf-8"))["engine"])
        yield Pool(urls=tuple(urls), kind="vllm", model=MODEL, real=False, children=tuple(children))


def _await(child: Child, ready: Path) -> None:
    wait_until(lambda: ready.exists() or not child.running, timeout_s=READY_S, what="the fake engine")
    if not ready.exists():
        raise AbsentError(f"a fake engine ended while starting: {child.tail()}")


@contextmanager
def llama_engines(count: int, folder: Path) -> Iterator[Pool]:
    """Run llama.cpp's server with the small model, so many times, as `luftpause up` starts it.

    Raises:
        AbsentError: the server or the model is not here.
    """
    engine, model = find_local_engine(os.environ), find_local_model()
    if engine is None or model is None:
        raise AbsentError("llama.cpp or the small model is missing; sh scripts/up installs both")
    ports = [free_port() for _ in range(count)]
    commands = [
        list(engine.command(model=model, host="127.0.0.1", port=str(port), alias="small", args=())) for port in ports
    ]
    urls = tuple(f"http://127.0.0.1:{port}" for port in ports)
    with _running(commands, folder) as children:
        wait_until(lambda: all(answers(url, "small") for url in urls), timeout_s=READY_S, what="llama-server")
        yield Pool(urls=urls, kind="llama.cpp", model="small", real=True, children=tuple(children))


@contextmanager
def _running(commands: Sequence[Sequence[str]], folder: Path) -> Iterator[list[Child]]:
    children: list[Child] = []
    try:
        for number, command in enumerate(commands):
            children.append(Child(command, log=folder / f"engine-{number}.log"))
        yield children
    finally:
        for child in children:
            child.stop()
