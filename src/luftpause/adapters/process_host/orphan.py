"""Processes that another launcher started and left behind: looked at, and kept as if they were our own."""

import asyncio
import logging
import os
import select
import signal as signals
import threading
from collections.abc import Callable

from luftpause.adapters import process_table
from luftpause.adapters.process_host.log import ProcessLog
from luftpause.adapters.process_host.marks import Mark, end_carriers, leader_of, signal_carriers
from luftpause.adapters.process_host.output import read_all
from luftpause.core.processes.actions import StopSignal
from luftpause.ports.processes import Launch, ProcessEnd, RunningProcess

_LOG = logging.getLogger("luftpause.launcher")
_SIGNALS = {StopSignal.TERM: signals.SIGTERM, StopSignal.KILL: signals.SIGKILL}
_LAST_OUTPUT_S = 1.0


class Orphan:
    """One of them; see `LeftBehind`.

    Args:
        mark: what is known of it; it is ours already.
        launch_text: what marks say of a launch.
        adopt: makes it ours to keep.
    """

    def __init__(
        self, mark: Mark, launch_text: Callable[[Launch], str], adopt: Callable[[Mark], RunningProcess]
    ) -> None:
        self._mark = mark
        self._launch_text = launch_text
        self._adopt = adopt

    @property
    def name(self) -> str:
        """As its launch named it."""
        return self._mark.name

    @property
    def port(self) -> int:
        """Where it was told to listen."""
        return self._mark.port

    def is_of(self, launch: Launch) -> bool:
        """Return whether it is the very process that a launch would start now."""
        mark = self._mark
        return mark.survives and mark.launch == self._launch_text(launch) and leader_of(mark) is not None

    def listens(self) -> bool | None:
        """Return whether it, or a child of it, listens on its port; None where nobody can tell."""
        return process_table.listens(self._mark.pid, self._mark.port)

    def adopt(self) -> RunningProcess:
        """Return it as our own."""
        return self._adopt(self._mark)


class AdoptedProcess:
    """A process that is no child of ours; see `RunningProcess`. Use it from the thread of a running event loop.

    It is known by its word alone, since its id may be another's as soon as it has ended.

    Args:
        mark: what is known of it.
        output: the end to read of what it writes; closed here. None: nobody can read it.
        log: where that goes.
        on_gone: called, in any thread, once all of its group is gone.
    """

    def __init__(self, mark: Mark, output: int | None, log: ProcessLog, on_gone: Callable[[], None]) -> None:
        self._mark = mark
        self._log = log
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[ProcessEnd] = self._loop.create_future()
        self._reader: threading.Thread | None = None
        if output is not None:
            name = f"log-{mark.pid}"
            self._reader = threading.Thread(target=read_all, args=(output, log), daemon=True, name=name)
            self._reader.start()
        threading.Thread(target=self._wait, daemon=True, name=f"wait-{mark.pid}").start()

    @property
    def pid(self) -> int:
        """Its id, and that of its group."""
        return self._mark.pid

    @property
    def alive(self) -> bool:
        """Whether the process itself has not ended yet."""
        return leader_of(self._mark) is not None

    def tail(self) -> tuple[str, ...]:
        """Return the last lines that it wrote since it is ours, oldest first."""
        return self._log.tail()

    def listens_on(self, port: int) -> bool | None:
        """Return whether it, or a child of it, is who listens on the port; None where nobody can tell."""
        return process_table.listens(self._mark.pid, port)

    def worked_s(self) -> float | None:
        """Return the processor time that it and its children have taken, seconds; None where nobody can tell."""
        return process_table.worked_s(self._mark.pid)

    def signal(self, signal: StopSignal) -> None:
        """Signal all that carry its word, soon: finding them takes milliseconds."""
        arguments = (_SIGNALS[signal], (self._mark.word,))
        threading.Thread(target=signal_carriers, args=arguments, daemon=True, name=f"signal-{self._mark.pid}").start()

    async def ended(self) -> ProcessEnd:
        """Return once the process has ended, and with it every child that it left behind."""
        return await asyncio.shield(self._ended)

    def _wait(self) -> None:
        _wait_for(self._mark)
        if end_carriers(self._mark.word):
            self._on_gone()
        if self._reader is not None:
            self._reader.join(_LAST_OUTPUT_S)
        try:
            self._loop.call_soon_threadsafe(self._tell, ProcessEnd(code=None, tail=self._log.tail()))
        except RuntimeError:  # the loop was closed: nobody is left to tell
            _LOG.debug("process_ended_unheard", extra={"pid": self._mark.pid})

    def _tell(self, end: ProcessEnd) -> None:
        if not self._ended.done():
            self._ended.set_result(end)


def _wait_for(mark: Mark) -> None:
    try:
        handle = os.pidfd_open(mark.pid)
    except OSError:
        return
    try:
        if leader_of(mark) is not None:  # else the id is another's by now
            waiting = select.poll()
            waiting.register(handle, select.POLLIN)
            waiting.poll()
    finally:
        os.close(handle)
