"""Answers that become longer than their turns are charged for: those are charged with more while the answer is made.

What a replica bears is reckoned with it from then on: nothing is taken from the turn itself, but who is to begin there
finds less free. Its payer is charged with what it has had by now, its replica with a little of what is to come as well.
"""

from luftpause.core.model.charges import BYTES_MAX, TOKENS_MAX, Charge
from luftpause.core.model.ids import Instant, TurnId
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.events import OpenTurn
from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.working_set.lengths import service_of
from luftpause.core.scheduling.working_set.seats import grown


def grow(draft: Draft, name: TurnId, reply_bytes: int, now: Instant) -> None:
    """Charge a turn with more of whose answer so many bytes were streamed; nothing changes where that is no news."""
    draft.renew((name,), now)
    turn, limits = draft.turns.get(name), draft.limits.working_set
    if turn is None or turn.charge is None or limits is None:
        return
    before, arrival = turn.charge, turn.arrival
    after = before.grown(reply_bytes, max(0, arrival.reply_max))
    if after is before:
        return
    made = min(after.reply, max(before.reply, before.made(reply_bytes)))
    service = max(turn.service, service_of(before.prompt, turn.expects, made))
    payer = arrival.principal, arrival.caller
    more = after.tokens - before.tokens
    change = limits.weights.changed(payer, turn.service, service) if limits.by_service else (0, 0)
    draft.settle(payer, change, more)
    turn = turn._replace(tokens=turn.tokens + more, service=service, charge=after)
    draft.turns = draft.turns.set(name, turn)
    replica = draft.replicas[turn.replica]
    draft.set_replica(replica._replace(seat=grown(replica.seat, turn, more, now)))


def told_charge(limits: Limits, known: OpenTurn) -> Charge | None:
    """Return what a turn was charged with as its dataplane tells, as far as that can be; None where nobody books it."""
    told = known.charge
    if told is None or limits.working_set is None or known.kind is not ReplicaKind.GENERATIVE:
        return None
    reply = max(0, min(told.reply, TOKENS_MAX))
    return Charge(
        prompt=max(1, min(told.prompt, TOKENS_MAX)),
        reply=reply,
        reply_bytes=max(0, min(told.reply_bytes, BYTES_MAX)) if reply else 0,
        reply_cap=max(0, min(told.reply_cap, TOKENS_MAX)),
    )
