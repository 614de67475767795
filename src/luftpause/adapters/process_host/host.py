"""Processes of this machine: each in a session of its own, with few variables, no input and a bounded log.

It knows nothing of engines. One thread per process reads what it writes, one waits for its end: file I/O and waiting
never hold up the event loop.
"""

import asyncio
import hashlib
import logging
import os
import shutil
import signal as signals
import socket
import subprocess
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

from luftpause.adapters import process_table
from luftpause.adapters.process_host.log import LineRing, ProcessLog
from luftpause.adapters.process_host.marks import Mark, ProcessMarks, end_carriers
from luftpause.adapters.process_host.orphan import AdoptedProcess, Orphan
from luftpause.adapters.process_host.output import output_of_another, output_pipe, read_all
from luftpause.adapters.tether import WORD_VARIABLE, tethered
from luftpause.core.processes.actions import StopSignal
from luftpause.ports.processes import CouldNotStartError, Launch, LogSlice, ProcessEnd

_LOG = logging.getLogger("luftpause.launcher")
_INHERITED = frozenset(("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"))
_INHERITED_PREFIX = "LC_"
_SIGNALS = {StopSignal.TERM: signals.SIGTERM, StopSignal.KILL: signals.SIGKILL}
_LAST_OUTPUT_S = 1.0
"""How long to wait for the rest of the output once all of a group is gone; only a child that left it holds it open."""


class LocalProcess:
    """A child process and its group; see `RunningProcess`.

    Args:
        child: the process.
        word: what it and all its children carry, in whatever group.
        output: the end to read of what it writes; closed here.
        log: where that goes.
        on_gone: called, in any thread, once all of it is gone.
    """

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        word: str,
        output: int,
        log: ProcessLog,
        on_gone: Callable[[], None],
    ) -> None:
        self._on_gone = on_gone
        self._child = child
        self._word = word
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._alive = True
        self._reaping = threading.Lock()
        self._ended: asyncio.Future[ProcessEnd] = self._loop.create_future()
        self._reader = threading.Thread(target=read_all, args=(output, log), daemon=True, name=f"log-{child.pid}")
        self._waiter = threading.Thread(target=self._wait, daemon=True, name=f"wait-{child.pid}")
        self._reader.start()
        self._waiter.start()

    @property
    def pid(self) -> int:
        """Its id, and that of its group."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """Whether the process itself has not ended yet."""
        return self._alive and _is_running(self._child)

    def tail(self) -> tuple[str, ...]:
        """Return the last lines that it wrote so far, oldest first."""
        return self._log.tail()

    def listens_on(self, port: int) -> bool | None:
        """Return whether it, or a child of it, is who listens on the port; None where nobody can tell."""
        return process_table.listens(self._child.pid, port)

    def worked_s(self) -> float | None:
        """Return the processor time that it and its children have taken, seconds; None where nobody can tell."""
        return process_table.worked_s(self._child.pid)

    def signal(self, signal: StopSignal) -> None:
        """Signal the whole group. Nothing happens when all of it is gone."""
        with self._reaping:
            if self._alive:
                _signal_group(self._child.pid, _SIGNALS[signal])

    async def ended(self) -> ProcessEnd:
        """Return once the process has ended, and with it every child that it left behind."""
        return await asyncio.shield(self._ended)

    def _wait(self) -> None:
        # Until it is reaped its id cannot be given to another process, so the group is signalled before that.
        _wait_unreaped(self._child)
        with self._reaping:
            _signal_group(self._child.pid, signals.SIGKILL)
            self._alive = False
        code = self._child.wait()
        if end_carriers(self._word):  # a child that left the group still carries it
            self._on_gone()
        self._reader.join(_LAST_OUTPUT_S)
        end = ProcessEnd(code=code, tail=self._log.tail())
        try:
            self._loop.call_soon_threadsafe(self._tell, end)
        except RuntimeError:  # the loop was closed: nobody is left to tell
            _LOG.debug("process_ended_unheard", extra={"pid": self._child.pid, "code": code})

    def _tell(self, end: ProcessEnd) -> None:
        if not self._ended.done():
            self._ended.set_result(end)


class LocalProcessHost:
    """Starts processes on this machine; see `ProcessHost`. Use it from the thread of a running event loop.

    That thread should be the main one: on Linux, a child that asked to die with its parent dies with the thread that
    started it.

    Args:
        env: the variables to choose from; `os.environ` outside tests.
        log_dir: where each process's output is kept as `NAME.log` and `NAME.log.1`; None keeps only the last lines.
        marks: where each process is remembered, for a launcher that comes after us.
        outlived: processes live on when we are killed, for that launcher to adopt; else the kernel ends them with us.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        log_dir: Path | None = None,
        marks: ProcessMarks | None = None,
        outlived: bool = False,
    ) -> None:
        self._env = {name: value for name, value in env.items() if _is_inherited(name)}
        self._log_dir = log_dir
        self._marks = marks or ProcessMarks(None)
        self._outlived = outlived
        self._left: dict[str, Mark] = {}
        self._rings: defaultdict[str, LineRing] = defaultdict(LineRing)

    def lines(self, name: str, after: int) -> LogSlice:
        """Return what processes of a name wrote from a line on, as far as it is kept."""
        ring = self._rings.get(name)
        return LogSlice(lines=(), next=0) if ring is None else ring.since(after)

    def free_port(self, host: str) -> int:
        """Return a port at an address of this machine that nobody listens on now."""
        with socket.create_server((host, 0)) as probe:
            port: int = probe.getsockname()[1]
        return port

    def left_behind(self) -> tuple[Orphan, ...]:
        """Return what launchers that are gone left; from now on it is ours. Blocks for milliseconds."""
        self._left = {mark.word: mark for mark in self._marks.claim()}
        return tuple(Orphan(mark, self._launch_text, self._adopt) for mark in self._left.values())

    def end_left_behind(self, grace_s: float) -> None:
        """End all of that which was not adopted. Blocks until it is gone, for the grace at most, and a bit."""
        left, self._left = self._left, {}
        self._marks.end(left.values(), grace_s)

    def start(self, launch: Launch) -> LocalProcess:
        """Start a process in a group of its own, without waiting for anything.

        Raises:
            CouldNotStartError: there is no such process; the message says why.
        """
        if launch.port and not _is_free(launch.host, launch.port):
            message = f"port {launch.port} on {launch.host} is taken by another program"
            raise CouldNotStartError(message, port_taken=True)
        path = launch.env.get("PATH", self._env.get("PATH"))
        if not launch.argv or shutil.which(launch.argv[0], path=path) is None:
            raise CouldNotStartError(_why_not_run(launch.argv[0]) if launch.argv else "there is no program to run")
        try:
            log = ProcessLog(self._log_dir, launch.name, self._rings[launch.name])
        except OSError as error:
            raise CouldNotStartError(f"cannot keep its log in {str(self._log_dir)!r}: {error}") from error
        word = self._marks.new_word()
        # So that it is found, whenever we are killed. What could not be found must not live on.
        survives = self._marks.keep(launch.name, word, 0) and self._outlived
        try:
            child, output = self._spawn(launch, word, survives=survives)
        except (OSError, ValueError) as error:
            log.close()
            self._marks.drop(word)
            raise CouldNotStartError(f"cannot run {launch.argv[0]!r}: {error}") from error
        self._marks.keep(launch.name, word, child.pid, launch=self._launch_text(launch), port=launch.port)
        return LocalProcess(child, word, output, log, lambda: self._marks.drop(word))

    def _spawn(self, launch: Launch, word: str, *, survives: bool) -> tuple[subprocess.Popen[bytes], int]:
        """Return the process and the end to read of what it writes.

        Raises:
            OSError, ValueError: it cannot be run.
        """
        # What nobody could read on must not live on: it would wait for ever to write.
        path = self._marks.new_output(word) if survives else None
        output, given = output_pipe(path)
        try:
            child = subprocess.Popen(
                launch.argv if path else tethered(launch.argv),
                env={**self._env, **launch.env, WORD_VARIABLE: word},
                stdin=subprocess.DEVNULL,
                stdout=given,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError):
            os.close(output)
            raise
        finally:
            os.close(given)
        return child, output

    def _launch_text(self, launch: Launch) -> str:
        """Return what differs whenever another process would be started."""
        started = (launch.argv, os.getcwd(), sorted({**self._env, **launch.env}.items()), launch.host, launch.port)
        return hashlib.sha256(repr(started).encode()).hexdigest()

    def _adopt(self, mark: Mark) -> AdoptedProcess:
        self._left.pop(mark.word, None)
        log = ProcessLog(None, mark.name, self._rings[mark.name])
        try:
            log = ProcessLog(self._log_dir, mark.name, self._rings[mark.name])
            output = output_of_another(self._marks.output_of(mark.word))
        except OSError as error:
            _LOG.warning("orphan_unread", extra={"engine": mark.name, "error": str(error)})
            output = None
        _LOG.warning("orphan_adopted", extra={"engine": mark.name, "pid": mark.pid})
        return AdoptedProcess(mark, output, log, lambda: self._marks.drop(mark.word))


def _is_inherited(name: str) -> bool:
    return name in _INHERITED or name.startswith(_INHERITED_PREFIX)


def _why_not_run(program: str) -> str:
    is_there = os.sep in program and Path(program).exists()
    return f"cannot run {program!r}: {'it may not be executed' if is_there else 'no such program'}"


def _is_free(host: str, port: int) -> bool:
    # Binding says more than connecting: it also finds one that listens on all addresses or does not answer.
    try:
        with socket.create_server((host, port)):
            return True
    except OSError:
        return False


def _is_running(child: subprocess.Popen[bytes]) -> bool:
    if not hasattr(os, "waitid"):
        return child.poll() is None
    try:
        return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def _wait_unreaped(child: subprocess.Popen[bytes]) -> None:
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        child.wait()
        return
    try:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:  # reaped behind our back; `wait` says the rest
        _LOG.debug("process_reaped_elsewhere", extra={"pid": child.pid})


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        _LOG.debug("process_group_gone", extra={"pid": group, "signal": number})
    except PermissionError:
        # macOS answers so for a group of which only zombies are left.
        _LOG.debug("process_group_unsignalled", extra={"pid": group, "signal": number})
