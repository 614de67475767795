"""Which run a turn belongs to, and whose that run is.

A run is the principal's who used its id first; for anyone else there is no such run. Without a header a run is
recognised by the tool-call ids that the request echoes, within its principal. Knows no policy and no clock.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from luftpause.core.model.ids import Instant, PrincipalId, RunId, ToolCallId
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.model.turns import IdentityKeys

RUN_ID_BYTES: Final = 16
"""Random bytes of a minted id: 128 bits cannot be guessed."""
ENTRIES_MAX: Final = 200_000
"""Remembered tool-call ids, and remembered owners: beyond it the oldest goes, whatever its age."""

_CallKey = tuple[PrincipalId, ToolCallId]


class RunIdentity:
    """The scheduler's memory of ids.

    Args:
        memory_s: how long an id is remembered after it was last seen, seconds.
        is_live: says whether the scheduler knows a run; the owner of a live run is never forgotten.
    """

    def __init__(self, *, memory_s: float, is_live: Callable[[RunId], bool]) -> None:
        self._memory_s = memory_s
        self._is_live = is_live
        self._owners: OrderedDict[RunId, tuple[PrincipalId, Instant]] = OrderedDict()
        self._calls: OrderedDict[_CallKey, tuple[RunId | None, Instant]] = OrderedDict()
        self._calls_of: dict[RunId, set[_CallKey]] = {}

    def resolve(self, principal: PrincipalId, keys: IdentityKeys, now: Instant) -> RunId | Refusal:
        """Return the run of a turn: the one it names, else the one it is recognised as, else a new one.

        Nobody owns a new run before it is claimed: a turn that is refused leaves nothing behind.
        """
        self._prune(now)
        if keys.run is None:
            return self._recognise(principal, keys.tool_calls) or _mint()
        if self.owner(keys.run) in (None, principal):
            return keys.run
        return Refusal(reason=RefusalReason.UNKNOWN_RUN, message=f"no run '{keys.run}'")

    def claim(self, run: RunId, principal: PrincipalId, now: Instant) -> None:
        """Note that a principal uses a run; whoever was first keeps it."""
        self._owners[run] = (self.owner(run) or principal, now)
        self._owners.move_to_end(run)

    def owner(self, run: RunId) -> PrincipalId | None:
        """Return whose the run is, None when it is nobody's."""
        known = self._owners.get(run)
        return None if known is None else known[0]

    def learn(self, run: RunId, calls: Iterable[ToolCallId], now: Instant) -> None:
        """Remember the tool-call ids that a turn of the run ended in. An id of two runs identifies neither."""
        principal = self.owner(run)
        if principal is None:
            return
        for call in calls:
            key = (principal, call)
            known = self._calls.get(key)
            self._calls[key] = (run if known is None or known[0] == run else None, now)
            self._calls.move_to_end(key)
            self._calls_of.setdefault(run, set()).add(key)
        self._prune(now)

    def forget(self, run: RunId) -> None:
        """Drop everything about a run."""
        self._owners.pop(run, None)
        for key in self._calls_of.pop(run, ()):
            known = self._calls.get(key)
            if known is not None and known[0] == run:
                del self._calls[key]

    def _recognise(self, principal: PrincipalId, calls: Iterable[ToolCallId]) -> RunId | None:
        """Return the one run that the echoed ids point to; None when there is none, or more than one."""
        runs = {known[0] for call in calls if (known := self._calls.get((principal, call))) is not None}
        runs.discard(None)
        return runs.pop() if len(runs) == 1 else None

    def _prune(self, now: Instant) -> None:
        """Drop what is too old or too much; each entry is looked at when it has become the oldest."""
        limit = now - self._memory_s
        while self._calls:
            key, (run, seen) = next(iter(self._calls.items()))
            if seen >= limit and len(self._calls) <= ENTRIES_MAX:
                break
            del self._calls[key]
            if run is not None:
                self._drop_key(run, key)
        while self._owners:
            name, (principal, seen) = next(iter(self._owners.items()))
            if seen >= limit and len(self._owners) <= ENTRIES_MAX:
                break
            if self._is_live(name) and len(self._owners) <= ENTRIES_MAX:
                self._owners[name] = (principal, now)
                self._owners.move_to_end(name)
            else:
                self.forget(name)

    def _drop_key(self, run: RunId, key: _CallKey) -> None:
        keys = self._calls_of.get(run)
        if keys is not None:
            keys.discard(key)
            if not keys:
                del self._calls_of[run]


def _mint() -> RunId:
    return RunId(f"run_{secrets.token_urlsafe(RUN_ID_BYTES)}")
