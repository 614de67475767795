"""Runs a service until a signal asks it to stop. Which service it is, and how it drains, is decided by the caller."""

import asyncio
import ctypes
import importlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable

from luftpause.cli.failures import FAILED, failure_of
from luftpause.cli.say import say
from luftpause.telemetry import pauses

FREED_BYTES_KEPT = 64 * 1024 * 1024
"""Freed memory at the end of the heap that is kept for the next large request."""

ON_HEAP_BYTES = 4 * 1024 * 1024
"""Requests up to here are held on the heap, larger ones in mappings of their own."""

Main = Callable[[asyncio.Event], Awaitable[None]]

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
"""Names of glibc's malloc.h."""

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()))
"""A closed terminal ends a service as Ctrl-C does, so that no engine is left behind."""


def run_service(main: Main, *, is_child: bool = False) -> int:
    """Run `main` on uvloop where it exists and return the exit code.

    The first SIGINT, SIGTERM or SIGHUP (unless that is ignored, as under nohup) sets the event that `main` was given,
    so that it drains and returns; the second one cancels it, the third one kills. A failure that a person can mend is
    printed in one line; any other is raised. A child of a service that says so itself keeps quiet about stopping.
    """
    _open_standard_streams()
    pauses.begin()
    _keep_freed_memory()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        try:
            was_aborted = runner.run(_supervise(main, is_child=is_child))
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            failure.show()
            return failure.exit_code
        finally:
            pauses.end()
    if was_aborted:
        say("error: stopped before everything had drained", err=True)
    return FAILED if was_aborted else 0


def _open_standard_streams() -> None:
    """Open what was closed before we began, or our sockets would take its place and be written to."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one


def _keep_freed_memory() -> None:
    """Let glibc not give memory back that the next request of some 100 kB asks for again: that costs more than it."""
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:  # other C libraries have none
            mallopt(_M_TRIM_THRESHOLD, FREED_BYTES_KEPT)
            mallopt(_M_MMAP_THRESHOLD, ON_HEAP_BYTES)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    except ImportError:  # no wheel for this platform; the standard loop does the same, slower
        return asyncio.new_event_loop
    return factory


async def _supervise(main: Main, *, is_child: bool) -> bool:
    """Return whether a second signal cut it short."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    service = asyncio.ensure_future(main(stop))

    def release_signals() -> None:
        for number in heeded:
            loop.remove_signal_handler(number)

    def take_signal() -> None:
        if stop.is_set():
            release_signals()
            service.cancel()
        else:
            stop.set()
            if not is_child:
                say("stopping; once more to abort", err=True)

    heeded = [number for number in _STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heeded:
        loop.add_signal_handler(number, take_signal)
    try:
        await service
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
        return True
    finally:
        release_signals()
    return False
