"""Runs a service until a signal asks it to stop. Which service it is, and how it drains, is decided by the caller."""

import asyncio
import gc
import importlib
import os
import signal
from collections.abc import Awaitable, Callable

from luftpause.cli.failures import FAILED, failure_of
from luftpause.cli.say import say

GC_THRESHOLDS = (10_000, 20, 50)
"""Fewer full collections: the cores' large maps hold no cycles, and one over 100,000 runs takes 400 ms."""

Main = Callable[[asyncio.Event], Awaitable[None]]

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()))
"""A closed terminal ends a service as Ctrl-C does, so that no engine is left behind."""


def run_service(main: Main) -> int:
    """Run `main` on uvloop where it exists and return the exit code.

    The first SIGINT, SIGTERM or SIGHUP (unless that is ignored, as under nohup) sets the event that `main` was given,
    so that it drains and returns; the second one cancels it, the third one kills. A failure that a person can mend is
    printed in one line; any other is raised.
    """
    _open_standard_streams()
    gc.set_threshold(*GC_THRESHOLDS)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        try:
            was_aborted = runner.run(_supervise(main))
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            failure.show()
            return failure.exit_code
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


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    except ImportError:  # no wheel for this platform; the standard loop does the same, slower
        return asyncio.new_event_loop
    return factory


async def _supervise(main: Main) -> bool:
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
