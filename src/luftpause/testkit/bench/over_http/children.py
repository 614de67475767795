"""Processes that a benchmark starts, waits for and stops again."""

import os
import select
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_STOP_S = 8.0


class Child:
    """A child process; its standard error goes to a file, and so does its output unless we read its lines.

    Args:
        arguments: the command line.
        log: the file, appended to.
        env: the whole environment; None inherits ours.
        lines: whether `read_line` is going to read its output.
    """

    def __init__(
        self, arguments: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None, lines: bool = False
    ) -> None:
        self._log = log
        self._pending = b""
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                list(arguments),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if lines else output,
                stderr=output,
                env=env,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def tail(self) -> str:
        """Return the end of what it wrote to standard error."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-600:]

    def say(self, line: str = "") -> None:
        """Write one line to its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def read_line(self, timeout_s: float) -> str:
        """Return the next line of its standard output.

        Raises:
            TimeoutError: nothing came in time.
            EOFError: it closed its output.
        """
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._pending:
            if not select.select([descriptor], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise TimeoutError(f"process {self.pid} said nothing for {timeout_s} s: {self.tail()}")
            data = os.read(descriptor, 65536)
            if not data:
                raise EOFError(f"process {self.pid} ended: {self.tail()}")
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode()

    def stop(self) -> None:
        """End it: politely, then for good."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self.running:
            self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def wait_until(ready: Callable[[], bool], *, timeout_s: float, what: str) -> None:
    """Poll until `ready` says yes.

    Raises:
        TimeoutError: it did not in time; the message names `what`.
    """
    deadline = time.monotonic() + timeout_s
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} was not ready within {timeout_s} s")
        time.sleep(0.02)


def free_port() -> int:
    """Return a port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
