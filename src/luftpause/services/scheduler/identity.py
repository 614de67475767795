"""Which run a turn belongs to, and whose that run is.

A run is the principal's who used its id first; for anyone else there is no such run. Without a header a run is
recognised by its *marks*, within its principal: a harness's session, the tool-call ids that the request echoes, its
cache key, what was said in it. A mark of two runs identifies neither. Knows no policy and no clock.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from luftpause.core.model.ids import Instant, Mark, PrincipalId, RunId
from luftpause.core.model.marks import call_marks, is_session, key_mark, session_mark
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.model.turns import IdentityKeys
from luftpause.core.scheduling.state import Run

RUN_ID_BYTES: Final = 16
"""Random bytes of a minted id: 128 bits cannot be guessed."""
ENTRIES_MAX: Final = 200_000
"""Remembered marks, and remembered owners: beyond it the oldest goes, whatever its age."""

_MarkKey = tuple[PrincipalId, Mark]


class RunIdentity:
    """The scheduler's memory of ids and marks.

    Args:
        memory_s: how long an id or mark is remembered after it was last seen, seconds.
        find: returns what the scheduler knows of a run with each of its models; the owner of one that it knows is
            never forgotten.
    """

    def __init__(self, *, memory_s: float, find: Callable[[RunId], Sequence[Run]]) -> None:
        self._memory_s = memory_s
        self._find = find
        self._owners: OrderedDict[RunId, tuple[PrincipalId, Instant]] = OrderedDict()
        self._marks: OrderedDict[_MarkKey, tuple[RunId | None, Instant]] = OrderedDict()
        self._marks_of: dict[RunId, set[_MarkKey]] = {}
        self._none_due_before = 0.0

    def resolve(self, principal: PrincipalId, keys: IdentityKeys, now: Instant) -> RunId | Refusal:
        """Return the run of a turn: the one it names, else the one it is recognised as, else a new one.

        Nobody owns a new run before it is claimed: a turn that is refused leaves nothing behind.
        """
        self._prune(now)
        if keys.run is None:
            return self._recognise(principal, keys) or _mint()
        if self.owner(keys.run) in (None, principal):
            return keys.run
        return Refusal(reason=RefusalReason.UNKNOWN_RUN, message=f"no run '{keys.run}'")

    def lacks_word(self, principal: PrincipalId, keys: IdentityKeys) -> bool:
        """Say whether a request shows signs of a run, and of none that it can be a turn of by now.

        A session's first request, and the first with a cache key, are what they seem to be; and of what identifies
        nobody there is no more to be told.
        """
        if keys.run is not None or keys.session or self._recognise(principal, keys) is not None:
            return False
        signs = [(principal, mark) for mark in (*call_marks(keys.tool_calls), *keys.said)]
        key = (principal, key_mark(keys.cache_key))
        told = [self._marks.get(sign) for sign in (*signs, *([key] if key in self._marks else ()))]
        return any(known is None or known[0] is not None for known in told)

    def parent(self, principal: PrincipalId, keys: IdentityKeys, run: RunId) -> RunId | None:
        """Return the parent that a request of a run names: by its id, the tool call that began the run, or its session.

        None where that is somebody else's, nobody's or the run itself.
        """
        if keys.parent is not None:
            found: RunId | None = keys.parent if self.owner(keys.parent) in (None, principal) else None
        else:
            found = None if keys.parent_call is None else self._marked(principal, call_marks((keys.parent_call,)))
            if found is None and keys.parent_session:
                found = self._marked(principal, (session_mark(keys.parent_session),))
        return None if found == run else found

    def claim(self, run: RunId, principal: PrincipalId, now: Instant) -> None:
        """Note that a principal uses a run; whoever was first keeps it."""
        self._owners[run] = (self.owner(run) or principal, now)
        self._owners.move_to_end(run)

    def owner(self, run: RunId) -> PrincipalId | None:
        """Return whose the run is, None when it is nobody's."""
        known = self._owners.get(run)
        return None if known is None else known[0]

    def learn(self, run: RunId, marks: Sequence[Mark], now: Instant) -> None:
        """Remember marks of a run. One that another run has too identifies neither; a session goes on in the later."""
        principal = self.owner(run) if marks else None
        if principal is None:
            return
        for mark in marks:
            key = (principal, mark)
            known = self._marks.get(key)
            is_its_own = known is None or known[0] == run or is_session(mark)
            self._marks[key] = (run if is_its_own else None, now)
            self._marks.move_to_end(key)
            self._marks_of.setdefault(run, set()).add(key)
        self._prune(now)

    def forget(self, run: RunId) -> None:
        """Drop everything about a run."""
        self._owners.pop(run, None)
        for key in self._marks_of.pop(run, ()):
            known = self._marks.get(key)
            if known is not None and known[0] == run:
                del self._marks[key]

    def _recognise(self, principal: PrincipalId, keys: IdentityKeys) -> RunId | None:
        """Return the run that a request without a run id belongs to; None when that is a new one.

        A session says it all: one that is not known yet is new, whatever else its requests share with others'. A cache
        key may be shared by many, and what was said is only likely: neither is believed of a run that is in use.
        """
        if keys.session:
            return self._marked(principal, (session_mark(keys.session),))
        run = self._marked(principal, call_marks(keys.tool_calls)) if keys.tool_calls else None
        if run is None and keys.cache_key:
            run = self._at_rest(self._marked(principal, (key_mark(keys.cache_key),)), may_be_paused=False)
        for mark in keys.said:
            if run is not None:
                break
            run = self._at_rest(self._marked(principal, (mark,)), may_be_paused=True)
        return run

    def _at_rest(self, run: RunId | None, *, may_be_paused: bool) -> RunId | None:
        parts = () if run is None else self._find(run)
        rests = all(part.at_rest and (may_be_paused or not part.paused) for part in parts)
        return run if parts and rests else None

    def _marked(self, principal: PrincipalId, marks: Iterable[Mark]) -> RunId | None:
        """Return the one run that marks point to; None when there is none, or more than one."""
        runs = {known[0] for mark in marks if (known := self._marks.get((principal, mark))) is not None}
        runs.discard(None)
        return runs.pop() if len(runs) == 1 else None

    def _prune(self, now: Instant) -> None:
        """Drop what is too old or too much; each entry is looked at when it has become the oldest."""
        if now < self._none_due_before and max(len(self._marks), len(self._owners)) <= ENTRIES_MAX:
            return
        limit = now - self._memory_s
        oldest = now
        while self._marks:
            key, (run, seen) = next(iter(self._marks.items()))
            if seen >= limit and len(self._marks) <= ENTRIES_MAX:
                oldest = seen
                break
            del self._marks[key]
            if run is not None:
                self._drop_key(run, key)
        while self._owners:
            name, (principal, seen) = next(iter(self._owners.items()))
            if seen >= limit and len(self._owners) <= ENTRIES_MAX:
                oldest = min(oldest, seen)
                break
            if self._find(name) and len(self._owners) <= ENTRIES_MAX:
                self._owners[name] = (principal, now)
                self._owners.move_to_end(name)
            else:
                self.forget(name)
        self._none_due_before = oldest + self._memory_s

    def _drop_key(self, run: RunId, key: _MarkKey) -> None:
        keys = self._marks_of.get(run)
        if keys is not None:
            keys.discard(key)
            if not keys:
                del self._marks_of[run]


def _mint() -> RunId:
    return RunId(f"run_{secrets.token_urlsafe(RUN_ID_BYTES)}")
