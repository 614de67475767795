"""Runs real clients, each at a `luftpause up` of its own, and prints what came of it.

    PYTHONPATH=tests python -m clients.run FOLDER [NAME ...]

FOLDER is where `scripts/clients` has installed them. Signs of life are sent early and often, so that every client gets
some before its answers.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from clients.case import PLANNER, Case
from clients.cases import CASES
from clients.plans import Plan
from clients.recorded import Recorded, recorded_in
from stories.programs import Program, running
from stories.raw_wire import Engine
from stories.set_ups import FREE_PORTS, launched_engines, tools, write

CLIENT_S_MAX = 180.0
PROGRAMS = Path(__file__).parent / "programs"
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
EARLY = 'keepalive_after = "50ms"\nkeepalive = "50ms"\n'
ENGINE = ("--ttft-ms", "300", "--token-ms", "1", "--tool-rounds", "0", "--reply-tokens", "12")
LOOK_UP_S = 1.0
HEAD = ("client", "version", "wire", "turns", "runs", "sub-agents", "calls", "seconds", "verdict")


@dataclass(frozen=True)
class Outcome:
    """What came of a case; no faults: it is fine. `tools_s`: how long its model waited for its sub-agents."""

    case: Case
    version: str
    seen: Recorded
    seconds: float
    tools_s: float
    faults: list[str]

    def cells(self) -> tuple[str, ...]:
        seen, case = self.seen, self.case
        runs = f"{len(seen.runs)}/{case.runs}"
        children = f"{seen.children}/{case.children}" if case.runs > 1 else "-"
        numbers = (str(seen.turns), runs, children, str(seen.calls), f"{self.seconds:.0f}")
        wire = f"{case.wire}, MCP" if case.look_ups else case.wire
        return (case.name, self.version, wire, *numbers, "; ".join(self.faults) or "ok")

    def timed(self) -> str:
        how = "at once" if self.case.at_once else "one after another"
        return f"{self.case.name}: {self.case.look_ups} look-ups of {LOOK_UP_S:g} s {how} took {self.tools_s:.1f} s"


def main(folder: Path, names: list[str]) -> int:
    """Run the cases of these names, all without any; return the exit code."""
    outcomes = []
    print(line(HEAD), line(tuple("-" * 3 for _ in HEAD)), sep="\n", flush=True)
    for case in CASES:
        if not names or case.name in names or f"{case.name}:{case.wire}" in names:
            outcomes.append(tried(folder, case))
            print(line(outcomes[-1].cells()), flush=True)
    for outcome in outcomes:
        if outcome.case.look_ups > 1:
            print(outcome.timed(), flush=True)
    return 1 if not outcomes or any(outcome.faults for outcome in outcomes) else 0


def line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def tried(folder: Path, case: Case) -> Outcome:
    """Run one client."""
    with tempfile.TemporaryDirectory(prefix="client-") as name:
        home = Path(name)
        (home / "work").mkdir()
        log = home / "events.jsonl"
        ports = FREE_PORTS.replace("[dataplane]\n", "[dataplane]\n" + EARLY)
        plan = Plan(case.look_ups, case.at_once)
        with Engine(reply=plan.reply) as planner:
            more = planned(planner.url) if case.look_ups else ""
            config = write(home, ports, launched_engines(*ENGINE), more)
            began = time.monotonic()
            with running(home, "up", "up", "--config", config, "--event-log", str(log)) as doors:
                code, output = ran(folder, case, home, doors)
            seconds = time.monotonic() - began
        seen = recorded_in(log)
        faults = faults_in(case, seen, code, output)
        return Outcome(case, version_of(folder, case), seen, seconds, plan.seconds, faults)


def planned(url: str) -> str:
    """Return the declaration of the engine that follows a plan, and of what its sub-agents look things up with."""
    return f'\n[[replicas]]\nname = "{PLANNER}"\nurl = "{url}"\nmodels = ["{PLANNER}"]\n' + tools(LOOK_UP_S)


def ran(folder: Path, case: Case, home: Path, doors: Program) -> tuple[int | None, str]:
    """Return exit code and output of a client; None: it took too long."""
    own = folder / case.folder
    known = {
        "own": str(own),
        "base": doors.url("dataplane"),
        "mcp": doors.url("runtime") + "/mcp",
        "home": str(home),
        "programs": str(PROGRAMS),
        "examples": str(EXAMPLES),
    }

    def filled(text: str) -> str:
        for name, value in known.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    for path, text in case.files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(filled(text))
    bins = [own / "bin", own / "node_modules/.bin", folder / "node/node_modules/node/bin"]
    environment = {
        "HOME": str(home),
        "PATH": os.pathsep.join([*map(str, bins), os.environ["PATH"]]),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        **{key: filled(value) for key, value in case.env.items()},
    }
    with (home / "client.log").open("wb") as output:
        process = subprocess.Popen(
            list(map(filled, case.command)),
            executable=found(bins, case.command[0]),
            cwd=home / "work",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            code = process.wait(CLIENT_S_MAX)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            ended(process)
    return code, (home / "client.log").read_text(errors="replace")


def found(bins: list[Path], name: str) -> str:
    """Return the program of that name."""
    for folder in bins:
        if (folder / name).exists():
            return str(folder / name)
    raise SystemExit(f"{name} is not installed: run sh scripts/clients")


def ended(process: "subprocess.Popen[bytes]") -> None:
    """End what a client has started and left behind: the group is its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def version_of(folder: Path, case: Case) -> str:
    """Return the version that is installed."""
    package = folder / case.folder / "node_modules" / case.package / "package.json"
    if package.exists():
        return str(json.loads(package.read_text())["version"])
    name = case.package.replace("-", "_")
    infos = (folder / case.folder / "lib").glob(f"python*/site-packages/{name}-*.dist-info")
    return next(infos).name.removeprefix(f"{name}-").removesuffix(".dist-info")


def faults_in(case: Case, seen: Recorded, code: int | None, output: str) -> list[str]:
    """Return what is not as it has to be."""
    faults = list(seen.failures)
    if code != 0:
        last = output.strip().splitlines()[-6:]
        faults.append(("took too long" if code is None else f"exit code {code}") + f": {' / '.join(last)[-600:]}")
    if len(seen.runs) != case.runs:
        faults.append(f"{len(seen.runs)} runs, not {case.runs}")
    if seen.calls < case.calls:
        faults.append(f"{seen.calls} calls, fewer than {case.calls}")
    if seen.children < case.children:
        faults.append(f"{seen.children} sub-agents are known as such, not {case.children}")
    ended = sum(run.open_calls for run in seen.runs.values())
    if ended != case.open_calls:
        faults.append(f"{ended} runs did not go on after their tool calls, not {case.open_calls}")
    return faults


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
