"""Starts real `luftpause` processes for the stories, waits for their ready file, and always ends them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

READY_S_MAX = 45.0
END_S_MAX = 20.0


@dataclass(frozen=True)
class Program:
    """A running process: its services' base URLs, and where its output goes."""

    process: subprocess.Popen[bytes]
    services: Mapping[str, str]
    output: Path

    def url(self, service: str) -> str:
        return self.services[service]

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait(END_S_MAX)

    def interrupt(self) -> int:
        """End it as Ctrl-C would, and return its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(END_S_MAX)


def launch(directory: Path, name: str, *arguments: str, env: Mapping[str, str] | None = None) -> Program:
    """Start `luftpause *arguments` in `directory` and return once its ready file is there."""
    ready = directory / f"{name}.ready.json"
    ready.unlink(missing_ok=True)
    output = directory / f"{name}.log"
    with output.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "luftpause", *arguments, "--ready-file", str(ready)],
            cwd=directory,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    deadline = time.monotonic() + READY_S_MAX
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            process.wait(END_S_MAX)
            raise AssertionError(f"{name} did not become ready:\n{output.read_text()[-4000:]}")
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
    services = json.loads(ready.read_text())
    assert services.pop("pid") == process.pid
    return Program(process, services, output)


@contextmanager
def running(directory: Path, name: str, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[Program]:
    """A program for the length of a block."""
    program = launch(directory, name, *arguments, env=env)
    try:
        yield program
    finally:
        if program.process.poll() is None:
            program.process.terminate()
            try:
                program.process.wait(END_S_MAX)
            except subprocess.TimeoutExpired:
                program.kill()
                raise
