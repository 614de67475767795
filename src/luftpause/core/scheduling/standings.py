"""What each party has of the engines, and has had: its turns, and when it was served last.

Where standings are by service, they count what a party was served instead, in tenths of a token: whoever comes back
from idling begins at what the one served last had had, so nothing is saved up.

A party is a principal among principals, or a caller among the callers of its principal. One without turns in flight
is remembered while anybody waits, so that callers of one turn at a time alternate with a flood, and no longer. Who
begins to wait without being remembered counts as served at that moment: nobody gains by changing its name. Knows
nothing of what the order is for.
"""

from typing import Final, NamedTuple, TypeAlias

from immutables import Map

from luftpause.core.model.ids import CallerId, PrincipalId
from luftpause.core.scheduling.known import found

Payer: TypeAlias = tuple[PrincipalId, CallerId]
"""A caller label below the principal who used it: two principals never share a caller."""

Party: TypeAlias = PrincipalId | Payer

Standing: TypeAlias = tuple[int, int]
"""Turns in flight, and the sequence number of the last placement: smaller goes first. No two parties share one."""

PayerStanding: TypeAlias = tuple[Standing, Standing]
"""That of a payer's principal among principals, and that of its caller among the principal's callers."""

Service: TypeAlias = tuple[int, int]
"""What a placement counts for among principals, and among the principal's callers; see `working_set/weights.py`."""

Change: TypeAlias = tuple[int, int]
"""By how much what a principal was served is another number, and what its caller was."""

RESTING_SPARE: Final = 1024
"""So many parties without open turns are remembered, and one more for each that waits, before all are dropped."""


class Account(NamedTuple):
    """A party with open turns: one record, since each turn that comes or goes changes several of these.

    Attributes:
        standing: of its kind among its likes.
        flying: its turns in flight, and loads that it forced.
        waiting: its held turns.
        tokens: that its turns in flight are charged with, for policy `working-set`.
    """

    standing: Standing
    flying: int = 0
    waiting: int = 0
    tokens: int = 0


Accounts: TypeAlias = Map[Party, Account]
Resting: TypeAlias = Map[Party, Standing]


class Standings(NamedTuple):
    """All parties.

    Attributes:
        of: each party that has open turns, in flight or held.
        waiting: how many of them have held turns.
        resting: the standing of each party that has no open turn and is remembered.
        tokens: that all turns in flight are charged with.
        clock: where standings are by service: what the principal served last had had by then; None where they are not.
        clocks: the same of each principal's callers, for principals with open turns; 0 where it is not there.
    """

    of: Map[Party, Account] = Map()
    waiting: int = 0
    resting: Map[Party, Standing] = Map()
    tokens: int = 0
    clock: int | None = None
    clocks: Map[PrincipalId, int] = Map()

    def of_payer(self, payer: Payer) -> PayerStanding:
        """Return the standing of a payer with open turns."""
        return self.of[payer[0]].standing, self.of[payer].standing

    def tokens_of(self, party: Party) -> int:
        """Return what a party's turns in flight are charged with."""
        account = found(self.of, party)
        return 0 if account is None else account.tokens

    def queued(self, payer: Payer, seq: int) -> "Standings":
        """Note that a turn of a payer begins to wait. Where standings are by service, nobody saves up idle time."""
        after = self._queued(payer[0], seq, self.clock or 0)
        return after._queued(payer, seq, after._clock_of_callers(payer[0]))

    def unqueued(self, payer: Payer) -> "Standings":
        """Note that a turn of a payer waits no more."""
        return self._unqueued(payer[0])._unqueued(payer)

    def placed(self, payer: Payer, seq: int, service: Service = (0, 0), tokens: int = 0) -> "Standings":
        """Note that a turn of a payer was placed, and where standings are by service, what that is worth."""
        of, resting, clock, clocks = self.of, self.resting, self.clock, self.clocks
        principal = payer[0]
        if clock is None:
            above, resting = _placed(of, resting, principal, (1, seq), 0, tokens)
            own, resting = _placed(of, resting, payer, (1, seq), 0, tokens)
            return Standings(_changed(of, payer, above, own), self.waiting, resting, self.tokens + tokens, None, clocks)
        above, resting = _placed(of, resting, principal, (service[0], seq), clock, tokens)
        had, known = above.standing[0] - service[0], found(clocks, principal) or 0
        clock = max(had, clock)
        own, resting = _placed(of, resting, payer, (service[1], seq), known, tokens)
        had = own.standing[0] - service[1]
        if had > known:
            clocks = clocks.set(principal, had)
        return Standings(_changed(of, payer, above, own), self.waiting, resting, self.tokens + tokens, clock, clocks)

    def settled_service(self, payer: Payer, change: Change, tokens: int = 0) -> "Standings":
        """Note that a turn in flight of a payer is worth more, or less, than was thought when it was placed.

        `tokens`: so many more it is charged with.
        """
        of = self.of
        above, own = _served(of[payer[0]], change[0], tokens), _served(of[payer], change[1], tokens)
        changed = _changed(of, payer, above, own)
        return Standings(changed, self.waiting, self.resting, self.tokens + tokens, self.clock, self.clocks)

    def ended(self, payer: Payer, tokens: int = 0, change: Change = (0, 0)) -> "Standings":
        """Note that a turn of a payer in flight ended, and was worth more, or less, than was thought."""
        above, resting = self._ended(self.resting, payer[0], tokens, change[0])
        own, resting = self._ended(resting, payer, tokens, change[1])
        of = _changed(self.of, payer, above, own)
        return Standings(of, self.waiting, resting, self.tokens - tokens, self.clock, self.clocks)

    def settled(self) -> "Standings":
        """Forget those without open turns when nobody waits, or when they have become too many."""
        if not self.resting or (self.waiting and len(self.resting) <= RESTING_SPARE + self.waiting):
            return self
        clocks = self.clocks
        for principal in [name for name in clocks if name not in self.of]:
            clocks = clocks.delete(principal)
        return self._replace(resting=Map(), clocks=clocks)

    def _queued(self, party: Party, seq: int, clock: int) -> "Standings":
        of, resting, account = self.of, self.resting, self.of.get(party)
        if account is not None:
            fresh = Account(account.standing, account.flying, account.waiting + 1, account.tokens)
        else:
            standing = resting.get(party)
            if standing is not None:
                resting = resting.delete(party)
            had, served = standing or (0, seq)
            fresh = Account((max(had, clock), served), 0, 1)
        waiting = self.waiting + (fresh.waiting == 1)
        return Standings(of.set(party, fresh), waiting, resting, self.tokens, self.clock, self.clocks)

    def _unqueued(self, party: Party) -> "Standings":
        of, resting, account = self.of, self.resting, self.of[party]
        held = account.waiting - 1
        if held or account.flying:
            of = of.set(party, Account(account.standing, account.flying, held, account.tokens))
        else:
            of, resting = of.delete(party), resting.set(party, account.standing)
        return Standings(of, self.waiting - (not held), resting, self.tokens, self.clock, self.clocks)

    def _ended(self, resting: Resting, party: Party, tokens: int, change: int) -> tuple[Account | None, Resting]:
        """Return a party's account with one turn in flight less, None where no turn is left; and who rests then."""
        account = self.of[party]
        had, served = account.standing
        had += -1 if self.clock is None else change
        if account.flying > 1 or account.waiting:
            ended = Account((had, served), account.flying - 1, account.waiting, account.tokens - tokens)
            return ended, resting
        return None, resting.set(party, (had, served)) if self.waiting else resting

    def _clock_of_callers(self, principal: PrincipalId) -> int:
        """Return what whoever was served last had had by then, among the callers of a principal."""
        return 0 if self.clock is None else self.clocks.get(principal, 0)


def _changed(of: Accounts, payer: Payer, above: Account | None, own: Account | None) -> Accounts:
    """Return the accounts with these of a payer and of its principal; None: it is dropped."""
    changing = of.mutate()
    if above is None:
        del changing[payer[0]]
    else:
        changing[payer[0]] = above
    if own is None:
        del changing[payer]
    else:
        changing[payer] = own
    return changing.finish()


def _placed(
    of: Accounts, resting: Resting, party: Party, service: Standing, clock: int, tokens: int
) -> tuple[Account, Resting]:
    """Return a party's account with one more turn, and who rests then. `service`: what it had of that, and when."""
    account = found(of, party)
    if account is not None:
        standing = account.standing[0] + service[0], service[1]
        return Account(standing, account.flying + 1, account.waiting, account.tokens + tokens), resting
    had = 0
    if resting:
        standing_then = resting.get(party)
        if standing_then is not None:
            had, resting = standing_then[0], resting.delete(party)
    return Account((max(had, clock) + service[0], service[1]), 1, 0, tokens), resting


def _served(account: Account, change: int, tokens: int) -> Account:
    had, served = account.standing
    return Account((had + change, served), account.flying, account.waiting, account.tokens + tokens)
