"""The status page with a thousand live runs: how fast `/status` answers, what the stream weighs, how long frames take.

.venv/bin/python benchmarks/page.py [--runs N] [--seconds S] [--json FILE]

The scheduler runs in a process of its own, with made-up dataplanes: every run takes a turn of 2 s and is out on a tool
for 3 s, again and again, so about 600 phases change each second. Frames are those of a headless Chromium, if there is
one, without a graphics card.
"""

import argparse
import asyncio
import http.client
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from luftpause.adapters.http_server.server import HttpServer
from luftpause.cli.serve import run_service
from luftpause.core.model.ids import ToolCallId, ToolName, TurnId
from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.events import FirstTokenSeen, TurnFinished
from luftpause.ports.run_trees import Costs, RunTree, TreeRun
from luftpause.services.scheduler.http import SchedulerHttp
from luftpause.services.scheduler.live_http import Surroundings
from luftpause.services.status.page import page_routes
from services.scheduler.run_trees import FakeRunTrees
from services.scheduler.running import offer, spec, started
from stories.browser import PROGRAM, browser

REPLICAS = 8
FAMILY = 20
CALLERS = 20
FIRST_TOKEN_S, TURN_S, TOOL_S = 0.5, 2.0, 3.0
FRAMES = """
new Promise((done) => {
  const gaps = [], long = [], ends = performance.now() + %d;
  new PerformanceObserver((seen) => long.push(...seen.getEntries().map((each) => each.duration)))
    .observe({ entryTypes: ["longtask"] });
  let last = 0;
  const frame = (at) => {
    if (last) gaps.push(at - last);
    last = at;
    if (performance.now() < ends) requestAnimationFrame(frame);
    else done({ gaps, long, lanes: document.getElementById("lanes-height").clientHeight / 22,
      rows: document.querySelectorAll("*").length });
  };
  requestAnimationFrame(frame);
})
"""


class _Trees(FakeRunTrees):
    """Two hundred sub-agents, half of which have gone on each time."""

    async def look(self, runtime: str) -> RunTree:
        """See `RunTrees`."""
        now = int(time.monotonic())
        return RunTree(runs=[_sub_agent(number, now if number % 2 else 1) for number in range(200)], omitted=800)


def _sub_agent(number: int, turns: int) -> TreeRun:
    costs = Costs(turns=turns, tool_calls=turns, prompt_tokens=turns * 900, completion_tokens=turns * 40)
    task = f"Find out what the {number}th river of the country is called, where it rises and who lives there."
    parent = f"run_{number - number % 10}" if number % 10 else None
    return TreeRun(handle=f"run_{number}", task=task, status="Running", model="m", parent=parent, subtree=costs)


async def serve(runs: int, stop: asyncio.Event) -> None:
    """Run a scheduler that is as busy as said, until it is told to stop."""
    service = started(*(spec(f"replica-{number}") for number in range(REPLICAS)))
    http_door = SchedulerHttp(service, Surroundings(trees=_Trees()))
    server = HttpServer(http_door.app(page_routes()), host="127.0.0.1", port=0)
    await server.start()
    print(server.url, flush=True)
    dice = random.Random(1)

    async def live(number: int) -> None:
        await asyncio.sleep(dice.random() * (TURN_S + TOOL_S))
        parent = None if number % FAMILY == 0 else f"run_{number - number % FAMILY}"
        turns = 0
        while True:
            turns += 1
            turn = f"turn-{number}-{turns}"
            service.admit(offer(turn, run=f"run_{number}", parent=parent))
            await asyncio.sleep(FIRST_TOKEN_S)
            service.report(FirstTokenSeen(turn=TurnId(turn)))
            await asyncio.sleep(TURN_S - FIRST_TOKEN_S)
            usage = Usage(prompt_tokens=1000, completion_tokens=50)
            tools = (ToolName(f"tool_{number % CALLERS}"),)
            service.report(TurnFinished(turn=TurnId(turn), usage=usage, tool_calls=(ToolCallId(turn),), tools=tools))
            await asyncio.sleep(TOOL_S)

    at_work = [asyncio.create_task(live(number)) for number in range(runs)]
    await stop.wait()
    for each in at_work:
        each.cancel()
    http_door.close()
    await server.close()


def asked_ms(url: str, times: int) -> list[float]:
    """Return how long `GET /status` took, over one connection."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    took = []
    for _ in range(times):
        began = time.perf_counter()
        connection.request("GET", "/status")
        size = len(connection.getresponse().read())
        took.append((time.perf_counter() - began) * 1000)
        time.sleep(0.05)
    print(f"  /status is {size / 1000:.0f} kB")
    connection.close()
    return took


def streamed_bytes(url: str, seconds: float) -> tuple[int, list[int]]:
    """Return the bytes of the first event, and those of each second after it."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    connection.request("GET", "/events")
    answer = connection.getresponse()
    first = _event(answer)
    ends = time.monotonic() + seconds
    sizes: dict[int, int] = {}
    while (now := time.monotonic()) < ends:
        second = int(now - ends)
        sizes[second] = sizes.get(second, 0) + _event(answer)
    connection.close()
    return first, list(sizes.values())


def _event(answer: http.client.HTTPResponse) -> int:
    size = 0
    while line := answer.readline():
        size += len(line)
        if line == b"\n":
            return size
    raise ConnectionError("the stream ended")


def frames(url: str, seconds: float) -> dict[str, object]:
    """Return what frames of the page took, milliseconds."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, browser(Path(folder)) as page:
        page.look(width=1440, height=900)
        page.go(url)
        page.wait("!document.getElementById('figures').hidden")
        page.wait("document.querySelector('#lanes-height').clientHeight > 2000")
        seen = page.evaluate(FRAMES % (seconds * 1000))
        assert isinstance(seen, dict)
        return {**seen, "faults": page.faults}


def at(values: Sequence[float], share: int) -> float:
    """Return a percentile."""
    return quantiles(values, n=100, method="inclusive")[share - 1]


def main() -> None:
    """Measure and print."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--runs", type=int, default=1000)
    words.add_argument("--seconds", type=float, default=10)
    words.add_argument("--json", type=Path)
    words.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    said = words.parse_args()
    if said.serve:
        run_service(lambda stop: serve(said.runs, stop), is_child=True)
        return
    command = [sys.executable, __file__, "--serve", "--runs", str(said.runs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            time.sleep(TURN_S + TOOL_S + 1)
            measured = measure(url, said.seconds)
        finally:
            server.terminate()
    if said.json is not None:
        said.json.write_text(json.dumps({"runs": said.runs, **measured}, indent=2) + "\n", encoding="utf-8")


def measure(url: str, seconds: float) -> dict[str, float]:
    """Return the figures of a scheduler that runs, and print them."""
    took = asked_ms(url, 100)
    first, sizes = streamed_bytes(url, seconds)
    figures = {
        "status_best_ms": min(took),
        "status_p50_ms": median(took),
        "status_p99_ms": at(took, 99),
        "stream_first_kB": first / 1000,
        "stream_p50_kB_per_s": median(sizes) / 1000,
        "stream_max_kB_per_s": max(sizes) / 1000,
    }
    if PROGRAM:
        seen = frames(url, seconds)
        gaps, long = seen["gaps"], seen["long"]
        assert isinstance(gaps, list)
        assert isinstance(long, list)
        figures["frame_p50_ms"] = median(gaps)
        figures["frame_p99_ms"] = at(gaps, 99)
        figures["long_tasks_per_min"] = len(long) * 60 / seconds
        figures["longest_task_ms"] = max(long, default=0.0)
        print(f"  {seen['lanes']:.0f} lanes, {seen['rows']} elements, faults: {seen['faults']}")
    for name, value in figures.items():
        print(f"  {name:24} {value:8.1f}")
    return figures


if __name__ == "__main__":
    main()
