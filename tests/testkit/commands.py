"""Runs commands of the test kit as real processes, bounded and cleaned up."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

BOUND_S = 50
END_S_MAX = 20.0
"""A program that does not end at all takes longer than that, and no machine is so slow."""


def command_line(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "luftpause", *arguments]


def finished(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command_line(*arguments),
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
        stdin=subprocess.DEVNULL,
        env=os.environ | (env or {}),
    )


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a command; killed at the end of the block if it still runs."""
    process = subprocess.Popen(
        command_line(*arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def ready(process: subprocess.Popen[str], file: Path) -> dict[str, object]:
    """Return what the ready file says, once the process has printed its line."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.stderr.read() if process.stderr else ""
    written: dict[str, object] = json.loads(file.read_text(encoding="utf-8"))
    return written


def stopped(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> int:
    """Send a signal and return the exit code."""
    process.send_signal(number)
    return process.wait(timeout=END_S_MAX)
