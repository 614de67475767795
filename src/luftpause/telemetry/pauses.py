"""When the collector looks through a service's objects: the one owner of all that is set, looked at and put off there.

Values without cycles are freed by their counts of references; the collector is for the few objects that refer to each
other. All stands still while it looks, in whichever thread that is, and it looks at young objects once so many more
were made than freed, and at all once many young ones became old. Beside a state of persistent maps both go wrong: one
that only changes frees as many old objects as it makes, so that with 100,000 runs the young ones were looked at once
in thousands of decisions, 25,000 objects in 12 ms, and all of them in 200 to 400 ms. So whoever owns such a state has
the young ones looked at by the number of decisions. What outlives that is frozen, which takes no time however much it
is, and is looked at when that hurts nobody.
"""

import asyncio
import contextlib
import gc
import resource
import sys
from collections.abc import Callable, Iterator
from typing import Final

THRESHOLDS: Final = (3_000, 1, 5_000)
"""Young objects are looked at by 3,000, the middle generation after two looks: 200,000 objects take 50 ms, these 9,000
two. The last number counts where nothing is frozen: beside few runs, in a dataplane, in a launcher."""

DECISIONS_A_LOOK: Final = 256
"""After so many, 10,000 waiting callers and 100,000 runs have some 3,000 young objects: 1.2 ms, 5 µs a decision."""

FEW_RUNS: Final = 500
"""No more objects can be young than a state has: so few runs have some 5,000, and need no looks but the usual ones."""

REST_S: Final = 30.0
"""Nothing was open for so long, and for no more than twice that: then all is looked at."""

LOOKS_A_REST: Final = 64
"""After fewer looks than this there is not enough to find for a pause of 0.3 s, whoever it hurts."""

GROWN_BYTES: Final = 512 * 1024 * 1024
BYTES_A_RUN: Final = 16 * 1024
"""A process that never rests may grow by so much, and for each run more by so much, before all is looked at: what its
objects that refer to each other take is found some day. A run takes a third of this."""

MANY_OBJECTS: Final = 100_000


def begin() -> None:
    """Set the collector for a service. What was imported stays, and is not looked at."""
    gc.set_threshold(*THRESHOLDS)
    gc.freeze()


def end() -> None:
    """Let whatever comes after a service look at all again."""
    gc.unfreeze()


@contextlib.contextmanager
def making_many_objects() -> Iterator[None]:
    """Make objects that stay, without looking through them for garbage: now again and again, and later ever again."""
    gc.disable()
    try:
        yield
        if gc.get_count()[0] >= MANY_OBJECTS:
            gc.freeze()
    finally:
        gc.enable()


class ShortPauses:
    """Counts the decisions of one owner of a state, on the loop that they are made on.

    Args:
        is_busy: says whether anybody would be hurt by a pause of 0.3 s. Without it nothing is frozen, and all is looked
            at when the collector itself thinks that it is time.
    """

    __slots__ = ("_is_busy", "_left", "_looks", "_peak", "_rested_at", "_runs", "_runs_then", "_timer")

    def __init__(self, is_busy: Callable[[], bool] | None = None) -> None:
        self._is_busy = is_busy
        self._left = DECISIONS_A_LOOK
        self._looks = 0
        self._peak = peak_bytes()
        self._runs = self._runs_then = 0
        self._rested_at: int | None = None
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """Look for times of rest from now on. Needs the running event loop."""
        self._timer = asyncio.get_running_loop().call_later(REST_S, self._rest)

    def close(self) -> None:
        """Look for rest no more, and leave nothing frozen. Calling it again changes nothing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._is_busy is not None:
            gc.unfreeze()

    def decided(self, runs: int) -> None:
        """Count one; after many, look through what is young. What outlives that is old: nothing is looked at twice.

        Args:
            runs: how many the state holds; beside few nothing is counted.
        """
        if runs <= FEW_RUNS:
            return
        self._left -= 1
        if not self._left:
            self._left = DECISIONS_A_LOOK
            self._look(runs)

    def look_at_all(self) -> None:
        """Look at everything now. It takes some 0.2 s with 100,000 runs."""
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._looks = 0
        self._peak, self._runs_then = peak_bytes(), self._runs

    def _look(self, runs: int) -> None:
        gc.collect(1)
        if self._is_busy is None:
            return
        gc.freeze()
        self._looks += 1
        self._runs = runs
        if self._looks % LOOKS_A_REST == 0:
            may_grow = GROWN_BYTES + BYTES_A_RUN * max(0, runs - self._runs_then)
            if peak_bytes() - self._peak > may_grow:
                self.look_at_all()

    def _rest(self) -> None:
        """Look at all where nothing was open now and a while ago, and nearly nothing was decided in between."""
        self.watch()
        is_at_rest = self._is_busy is not None and not self._is_busy()
        if is_at_rest and self._rested_at == self._looks >= LOOKS_A_REST:
            self.look_at_all()
        self._rested_at = self._looks if is_at_rest else None


def peak_bytes() -> int:
    """Return the most memory that this process ever had at once."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
