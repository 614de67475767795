"""Shows a compiled copy its work, so that a compiler that is told of it knows which way turns mostly go.

Agents and sub-agents of `luftpause loadgen` meet fake engines through the doors, under both policies, and the simulator
plays a flood: all of it is of the copy itself, on loopback, and takes some twenty seconds.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

START_S: Final = 60.0
"""Longest a service may take to be there."""
LOAD_S: Final = 120.0
"""Longest a load may take."""
_LOADS: Final = (
    ("--agents", "24", "--runs", "240", "--tool-calls", "3"),
    ("--agents", "24", "--runs", "240", "--tool-calls", "3", "--class", "batch", "--caller", "other"),
    ("--spawn", "8", "--runs", "24"),
)
_SIMULATED: Final = "w1", "w4-crowd"


class TrainingError(Exception):
    """The copy could not be shown its work. The message says why, for people."""


def train(package: Path, folder: Path) -> None:
    """Let a copy work.

    Args:
        package: the folder that holds `luftpause`.
        folder: an empty one for what its services write.

    Raises:
        TrainingError: something did not start, ended early, or took too long.
    """
    for policy in ("turn-admission", "working-set"):
        place = folder / policy
        place.mkdir(parents=True)
        with _engines(package, place) as engines, _doors(package, place, engines, policy) as doors:
            for load in _LOADS:
                asked = "--base-url", f"{doors['dataplane']}/v1", "--mcp-url", f"{doors['runtime']}/mcp"
                _run(package, place, "loadgen", *load, "--tool-s", "0", *asked)
    for scenario in _SIMULATED:
        _run(package, folder, "sim", scenario, "--seeds", "1", "--minutes", "1", "--arms", "turn-admission,working-set")


@contextlib.contextmanager
def _engines(package: Path, place: Path) -> Iterator[list[str]]:
    """Two fake engines that answer at once; their addresses."""
    names = "a", "b"
    fast = "--ttft-ms", "0", "--token-ms", "1", "--crowd-ms", "0", "--reply-tokens", "12", "--port", "0"
    with contextlib.ExitStack() as started:
        for name in names:
            started.enter_context(_service(package, place, name, "fake-engine", *fast))
        yield [_ready(place, name)["engine"] for name in names]


@contextlib.contextmanager
def _doors(package: Path, place: Path, engines: list[str], policy: str) -> Iterator[dict[str, str]]:
    """All of luftpause in front of engines, no port of it a known one; the addresses of its doors."""
    replicas = "".join(
        f'[[replicas]]\nname = "e{at}"\nurl = {json.dumps(url)}\nmodels = ["fake-1b"]\nengine = "vllm"\n\n'
        for at, url in enumerate(engines)
    )
    config = place / "luftpause.toml"
    config.write_text(
        f'{replicas}[scheduler]\npolicy = "{policy}"\nport = 0\nhttp_port = 0\n\n[dataplane]\nport = 0\n\n'
        f"[runtime]\nport = 0\nstate_dir = {json.dumps(str(place / 'state'))}\n",
        encoding="utf-8",
    )
    with _service(package, place, "up", "up", "--config", str(config)):
        yield _ready(place, "up")


@contextlib.contextmanager
def _service(package: Path, place: Path, name: str, *arguments: str) -> Iterator[None]:
    """A command of the copy that serves until it is told to end. It is ended in order: it notes what it did then."""
    told = place / f"{name}.json"
    with (place / f"{name}.log").open("wb") as log:
        command = [*_command(*arguments), "--ready-file", str(told)]
        child = subprocess.Popen(command, cwd=place, env=_environment(package), stdout=log, stderr=log)
    try:
        due = time.monotonic() + START_S
        while not told.exists():
            if child.poll() is not None or time.monotonic() > due:
                raise TrainingError(f"{arguments[0]} did not start: {_last_words(place / f'{name}.log')}")
            time.sleep(0.05)
        yield
    finally:
        child.terminate()
        try:
            child.wait(START_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _run(package: Path, place: Path, *arguments: str) -> None:
    log = place / f"{arguments[0]}.log"
    with log.open("wb") as output:
        try:
            ran = subprocess.run(
                _command(*arguments),
                cwd=place,
                env=_environment(package),
                stdout=output,
                stderr=output,
                timeout=LOAD_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise TrainingError(f"{arguments[0]} took longer than {LOAD_S:.0f} s") from error
    if ran.returncode:
        raise TrainingError(f"{arguments[0]} failed: {_last_words(log)}")


def _ready(place: Path, name: str) -> dict[str, str]:
    told: dict[str, str] = json.loads((place / f"{name}.json").read_text(encoding="utf-8"))
    return told


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "luftpause", *arguments]


def _environment(package: Path) -> dict[str, str]:
    """Return what a copy runs with: nothing that somebody set for another luftpause."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("LUFTPAUSE_", "OTEL_"))}
    return {**kept, "PYTHONPATH": str(package)}


def _last_words(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace").strip()[-500:]
