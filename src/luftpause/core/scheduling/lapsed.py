"""Turns that were given up for want of a sign of life, and are alive all the same: their dataplane was frozen.

They are remembered for a while, charged to nobody. Whatever is heard of one again charges it again, whereupon it goes
on or ends like any other.
"""

from collections.abc import Iterable

from luftpause.core.model.ids import Instant, PeerId, TurnId
from luftpause.core.scheduling.adopting import adopt
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.parts import at_work
from luftpause.core.scheduling.state import LAPSED_MAX, Run, Turn


def remember(draft: Draft, turns: Iterable[Turn]) -> None:
    """Note turns in flight that are over as far as anybody knows; of too many those that were placed first go."""
    lapsed = draft.lapsed.update({turn.arrival.turn: _silent(turn) for turn in turns})
    surplus = len(lapsed) - LAPSED_MAX
    if surplus > 0:
        in_order = sorted((turn.seq, name) for name, turn in lapsed.items())
        for _, name in in_order[:surplus]:
            lapsed = lapsed.delete(name)
    draft.lapsed = lapsed


def _silent(turn: Turn) -> Turn:
    """Return a turn that nobody waits for."""
    return turn._replace(returning=False, first_s=0.0 if turn.first_s is None else turn.first_s)


def revive(draft: Draft, turns: Iterable[TurnId], now: Instant) -> None:
    """Charge those turns again that were given up; others are none of ours. Their runs stay at home where they are."""
    for name in turns:
        turn = draft.lapsed.get(name)
        if turn is None:
            continue
        over_in = draft.expect_life(turn.arrival.peer, now)
        adopt(draft, turn._replace(seq=draft.take_seq(), over_in=over_in))
        if turn.in_run:
            run = draft.runs[turn.arrival.part]
            draft.set_run(at_work(run, name, run.home, run.home_epoch))


def leave_run(draft: Draft, run: Run) -> None:
    """Let none of them change a run with one model any more: it is forgotten."""
    for name in sorted(name for name, turn in draft.lapsed.items() if turn.arrival.part == run.part):
        draft.lapsed = draft.lapsed.set(name, draft.lapsed[name]._replace(in_run=False))


def forget(draft: Draft, peer: PeerId) -> None:
    """Remember a dataplane's no longer: it has told what it has, or it is gone."""
    for name in sorted(name for name, turn in draft.lapsed.items() if turn.arrival.peer == peer):
        draft.lapsed = draft.lapsed.delete(name)
