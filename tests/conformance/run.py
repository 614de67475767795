"""Holds the MCP door to the protocol's conformance suite and says what came of it.

    PYTHONPATH=tests python -m conformance.run NODE SUITE

NODE and SUITE are the programs that `scripts/conformance` installs. What needs none of the suite's fixtures is asked of
a real `luftpause runtime`, and everything that both revisions require, and all of tasks, of the same door with them.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stories.programs import running
from stories.set_ups import FREE_PORTS, write

NEEDS_FIXTURES = {
    "sep-2549-prompts-list-caching-hints",
    "sep-2549-resources-list-caching-hints",
    "sep-2549-resources-templates-list-caching-hints",
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
    "sep-2575-server-sends-tools-list-changed-on-subscription",
}
"""Checks of scenarios that need none otherwise. A runtime has neither prompts nor resources, nor the suite's tools."""

READY_S_MAX = 45.0
LEG_S_MAX = 240.0
REVISIONS = ("2025-11-25", "2026-07-28")
REAL = {
    "2025-11-25": (
        "server-initialize",
        "server-session-lifecycle",
        "ping",
        "tools-list",
        "dns-rebinding-protection",
        "server-sse-multiple-streams",
    ),
    "2026-07-28": (
        "tools-list",
        "dns-rebinding-protection",
        "server-sse-multiple-streams",
        "http-header-validation",
        "input-required-result-unsupported-methods",
        "caching",
        "server-stateless",
    ),
}
"""Scenarios that need no fixture, by revision."""

ONLY_RECOMMENDED = {"server-sse-priming-event", "server-sse-retry-field"}
"""Warnings about streams of sessions that could be taken up again, for which every event would have to be kept. A run
outlives its client anyway, and a client that asks for it again gets the same answer."""


@dataclass(frozen=True)
class Leg:
    """One run of the suite's program against one server. `accepted`: checks that may fail there."""

    name: str
    url: str
    arguments: tuple[str, ...]
    accepted: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Outcome:
    """What came of a leg: how many checks passed, and what did not."""

    leg: Leg
    passed: int
    scenarios: int
    faults: list[str]


def main(node: Path, suite: Path) -> int:
    """Run all legs; return the exit code."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        folder = Path(name)
        (folder / "real").mkdir()
        config = write(folder / "real", FREE_PORTS)
        with (
            running(folder / "real", "runtime", "runtime", "--config", config) as real,
            fixtures(folder) as fixed,
        ):
            legs = [
                *(
                    Leg(f"fixtures {each}", fixed, ("--requirements", each), frozenset(ONLY_RECOMMENDED))
                    for each in REVISIONS
                ),
                *(
                    Leg(
                        f"runtime {revision}",
                        real.url("runtime"),
                        ("--spec-version", revision, "--scenario", each),
                        frozenset(NEEDS_FIXTURES),
                    )
                    for revision in REVISIONS
                    for each in REAL[revision]
                ),
            ]
            with ThreadPoolExecutor(2) as pool:
                outcomes = list(pool.map(lambda leg: ran(node, suite, folder, leg), legs))
    for outcome in outcomes:
        verdict = "; ".join(outcome.faults) or "ok"
        scenarios = outcome.leg.arguments[-1]
        print(f"{outcome.leg.name:22} {scenarios:44} {outcome.passed:4} checks passed  {verdict}")
    faulty = sum(bool(outcome.faults) for outcome in outcomes)
    total = sum(outcome.passed for outcome in outcomes)
    print(f"conformance: {total} checks passed in {time.monotonic() - began:.0f} s, {faulty} legs with faults")
    return 1 if faulty or not total else 0


@contextmanager
def fixtures(folder: Path) -> Iterator[str]:
    """The door with the fixtures, for the length of a block."""
    ready = folder / "fixtures.ready"
    state = folder / "fixtures"
    state.mkdir()
    with (folder / "fixtures.log").open("wb") as log:
        command = [sys.executable, "-m", "conformance.server", str(state), str(ready)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + READY_S_MAX
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the fixtures did not start:\n{(folder / 'fixtures.log').read_text()[-4000:]}")
            time.sleep(0.05)
        yield str(json.loads(ready.read_text())["url"])
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def ran(node: Path, suite: Path, folder: Path, leg: Leg) -> Outcome:
    """Run one leg and read what the suite wrote down."""
    results = Path(tempfile.mkdtemp(prefix="results-", dir=folder))
    command = [str(node), str(suite), "server", "--url", f"{leg.url}/mcp", *leg.arguments, "-o", str(results)]
    try:
        ended = subprocess.run(command, capture_output=True, timeout=LEG_S_MAX, check=False, text=True)
    except subprocess.TimeoutExpired:
        return Outcome(leg, 0, 0, ["it took too long"])
    passed, faults, scenarios = 0, [], 0
    for file in sorted(results.rglob("checks.json")):
        scenarios += 1
        for check in json.loads(file.read_text()):
            if check["status"] == "SUCCESS":
                passed += 1
            elif check["status"] in ("FAILURE", "WARNING") and check["id"] not in leg.accepted:
                faults.append(
                    f"{file.parent.name.split('-20')[0]}: {check['id']}: {check.get('errorMessage', '')[:300]}"
                )
    if not scenarios:
        faults.append(f"no scenario ran: {(ended.stdout + ended.stderr).strip()[-500:]}")
    return Outcome(leg, passed, scenarios, faults)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
