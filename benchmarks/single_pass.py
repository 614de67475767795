"""What the door adds to a single-pass engine's answer: one call at a time, and twenty callers at once.

    python -m benchmarks.single_pass [--calls 300]

A fake classifier answers `/classify` in 8 ms. It is asked directly, and through `luftpause up` at `/v1/decide`, in
turns. Told are milliseconds, and what luftpause adds.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineRequest
from luftpause.testkit.bench.over_http.children import Child, wait_until
from luftpause.testkit.load.summary import percentile

MODEL = "labels"
CALLERS = 20
READY_S = 60.0
ENGINE = ("fake-engine", "--port", "0", "--model", MODEL, "--token-ms", "8", "--ttft-ms", "0")

Call = Callable[[], Awaitable[float]]


def started(folder: Path, name: str, *arguments: str) -> tuple[Child, dict[str, str]]:
    """Start luftpause with these arguments; return the process and what its ready file says."""
    ready = folder / f"{name}.json"
    command = [sys.executable, "-m", "luftpause", *arguments, "--ready-file", str(ready)]
    child = Child(command, log=folder / f"{name}.log")
    wait_until(lambda: ready.exists() or not child.running, timeout_s=READY_S, what=name)
    if not ready.exists():
        raise SystemExit(f"{name} did not start: {child.tail()}")
    return child, json.loads(ready.read_text(encoding="utf-8"))


def config(folder: Path, engine: str) -> Path:
    """Write the configuration of luftpause in front of the classifier."""
    file = folder / "luftpause.toml"
    file.write_text(
        f'[[replicas]]\nname = "classifier"\nurl = "{engine}"\nkind = "single-pass"\nmodels = ["{MODEL}"]\n'
        "[dataplane]\nport = 0\n[scheduler]\nport = 0\nhttp_port = 0\n"
        f"[runtime]\nport = 0\nstate_dir = {json.dumps(str(folder / 'state'))}\n",
        encoding="utf-8",
    )
    return file


def caller(engines: HttpEngines, url: str, path: str) -> Call:
    """Return what asks once and says how long that took, seconds."""
    body = json.dumps({"model": MODEL, "input": "The server returned 500 three times."}).encode()
    request = EngineRequest(
        method=b"POST", path=path.encode(), headers=((b"content-type", b"application/json"),), body=body
    )

    async def call() -> float:
        began = time.perf_counter()
        exchange = await engines.send(Endpoint(url=url), request)
        try:
            while await exchange.read():
                pass
            if exchange.status != 200:
                raise SystemExit(f"{url}{path} answered {exchange.status}")
        finally:
            exchange.close()
        return time.perf_counter() - began

    return call


async def one_at_a_time(call: Call, calls: int) -> list[float]:
    """Ask so often, each after the last."""
    return [await call() for _ in range(calls)]


async def together(call: Call, calls: int) -> list[float]:
    """Ask so often, as CALLERS do who wait for nobody."""
    shares = await asyncio.gather(*(one_at_a_time(call, calls // CALLERS) for _ in range(CALLERS)))
    return [took for share in shares for took in share]


async def measure(direct: str, door: str, calls: int) -> dict[str, dict[str, list[float]]]:
    """Return what each way took under each load, seconds; the ways take turns."""
    engines = HttpEngines()
    ways = {"direct": caller(engines, direct, "/classify"), "luftpause": caller(engines, door, "/v1/decide")}
    found: dict[str, dict[str, list[float]]] = {"one at a time": {}, f"{CALLERS} at once": {}}
    try:
        for call in ways.values():
            await one_at_a_time(call, 20)
        for load, ask in zip(found, (one_at_a_time, together), strict=True):
            for _ in range(3):
                for way, call in ways.items():
                    found[load].setdefault(way, []).extend(await ask(call, calls // 3))
    finally:
        await engines.close()
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time single-pass calls, directly and through the door.")
    parser.add_argument("--calls", type=int, default=300, help="of each load and way")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        engine, said = started(folder, "engine", *ENGINE)
        try:
            door, where = started(folder, "luftpause", "up", "--config", str(config(folder, said["engine"])))
            try:
                found = asyncio.run(measure(said["engine"], where["dataplane"], options.calls))
            finally:
                door.stop()
        finally:
            engine.stop()
    print(f"{'':16}{'way':12}{'p50 ms':>10}{'p99 ms':>10}{'added p50':>12}")
    for load, ways in found.items():
        base = statistics.median(ways["direct"])
        for way, took in ways.items():
            added = (statistics.median(took) - base) * 1000
            p50, p99 = (1000 * (percentile(took, percent) or 0.0) for percent in (50, 99))
            print(f"{load:16}{way:12}{p50:>10.2f}{p99:>10.2f}{added:>12.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
