"""What must hold of policy `working-set` in every state, proved by a scan. For tests and validation only."""

from collections import Counter

from luftpause.core.model.ids import ReplicaId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.affinity import bound_to, candidates
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.standings import Party
from luftpause.core.scheduling.state import HeldTurn, Replica, State
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.room import first_tokens_due, goes_on, has_tokens, is_outdone, may_begin
from luftpause.core.scheduling.working_set.state import Seat


def check_working_set(state: State) -> None:
    """Return if the state is sound.

    Raises:
        AssertionError: it is not; the message tells what differs from what.
    """
    limits = state.limits.working_set
    if limits is None:
        unused = [name for name, replica in state.replicas.items() if replica.seat != Seat()]
        assert not unused, f"another policy keeps the memory of {unused}"
        return
    _check_seats(state)
    _check_guests(state)
    _check_kept(state)
    _check_claims(state)
    _check_recalls(state, limits)
    for held in state.held.values():
        _check_waits_for_something(state, held, limits)


def _check_seats(state: State) -> None:
    in_flight, kept = Counter[str](), Counter[str]()
    awaiting: dict[str, set[str]] = {}
    for of_turn, turn in state.turns.items():
        in_flight[turn.replica] += turn.tokens
        is_told = turn.charge is None or turn.charge.tokens == turn.tokens
        assert is_told, f"{of_turn} is charged {turn.tokens} tokens, and its dataplane is told of {turn.charge}"
        if turn.tokens and turn.first_s is None:
            awaiting.setdefault(turn.replica, set()).add(of_turn)
    for run in state.runs.values():
        home = bound_to(state.replicas, run)
        if home is not None:
            kept[home.replica] += run.kept
    for name, replica in state.replicas.items():
        seat = replica.seat
        assert seat.in_flight == in_flight[name], f"{name} is charged {seat.in_flight}, not {in_flight[name]}"
        assert seat.kept == kept[name], f"{name} keeps {seat.kept}, not {kept[name]}"
        waits = {each.turn for each in seat.awaiting}
        assert waits <= awaiting.get(name, set()), f"{name} awaits first tokens of {waits - awaiting.get(name, set())}"
        assert all(each.until == state.turns[each.turn].late_at for each in seat.awaiting), f"{name}: {seat.awaiting}"
        limits = state.limits.working_set
        if limits is not None and first_tokens_due(replica, limits):
            assert name in state.working_set.silences.bucket_of, f"nobody ever looks whether {name} is silent"


def _check_guests(state: State) -> None:
    in_use, total, of_class = Counter[Party](), 0, Counter[tuple[ReplicaId, bool]]()
    for turn in state.turns.values():
        if turn.tokens:
            in_use.update(dict.fromkeys(_parties(turn.arrival), turn.tokens))
            total += turn.tokens
        if turn.guest:
            of_class[turn.replica, turn.arrival.service_class is ServiceClass.BATCH] += turn.tokens
    known = {party: account.tokens for party, account in state.standings.of.items() if account.tokens}
    assert known == dict(in_use), f"in use are {known}, not {dict(in_use)}"
    assert state.standings.tokens == total, f"in flight are {state.standings.tokens} tokens, not {total}"
    for name, replica in state.replicas.items():
        guests = replica.seat.guests, replica.seat.batch_guests
        assert guests == (of_class[name, False], of_class[name, True]), f"{name} has guests of {guests} tokens"


def _parties(arrival: TurnArrived) -> tuple[Party, Party]:
    return arrival.principal, (arrival.principal, arrival.caller)


def _check_kept(state: State) -> None:
    for name, run in state.runs.items():
        kept = run.kept_until is not None
        assert kept or not run.kept, f"{name} has a place that nobody ever takes"
        assert not (kept and run.turns), f"{name} is at work, and its place is kept"
        assert not run.replied or (run.at_rest and not run.paused), f"{name} is not idle, and may come back"
        assert not (kept and run.loose), f"the place of {name} is kept, and it may move"
        if run.kept_until is not None:
            look_at = state.working_set.leases.bucket_of.get(name)
            assert look_at is not None, f"nobody ever looks whether {name} still needs its place"
    unknown = set(state.working_set.leases.bucket_of) - set(state.runs)
    assert not unknown, f"places of unknown runs: {sorted(unknown)}"


def _check_claims(state: State) -> None:
    claims = {held.claims: name for name, held in state.held.items() if held.claims is not None}
    seats = {name: replica.seat.claimed_by for name, replica in state.replicas.items()}
    closed = {name: turn for name, turn in seats.items() if turn is not None}
    assert claims == closed, f"closed for {closed}, claimed by {claims}"
    for claimed, turn in claims.items():
        among = [each.replica for each in candidates(state.replicas, state.serving, state.held[turn].pool)]
        assert claimed in among, f"{turn} claims {claimed}, and may go to {among} only"


def _check_recalls(state: State, limits: WorkingSetLimits) -> None:
    for name, turn in state.turns.items():
        assert turn.asked_back or not turn.stays, f"{name} stays, and nobody asked for it"
        may_be = turn.arrival.service_class is ServiceClass.BATCH and turn.arrival.recalls < limits.recalls
        assert may_be or not turn.asked_back, f"{name} was asked back once too often"


def _check_waits_for_something(state: State, held: HeldTurn, limits: WorkingSetLimits) -> None:
    """Nobody waits beside room, and whoever may begin somewhere soon is either next there or behind somebody."""
    name, service_class = held.arrival.turn, held.arrival.service_class
    among = candidates(state.replicas, state.serving, held.pool)
    for replica in among:
        if isinstance(held.pool, str):
            assert not goes_on(replica, service_class, limits), f"{name} is held although {replica.replica} takes it"
        elif may_begin(replica, limits) and not (
            _is_closed(state, replica, held) or is_outdone(held.need, replica, among)
        ):
            fits = has_tokens(replica, service_class, held.need, limits, little=held.little)
            assert not fits, f"{name} is held beside {replica.replica}"
            is_next = held.claims is not None or not limits.claim
            assert is_next, f"{name} waits beside {replica.replica}, which is closed for nobody"


def _is_closed(state: State, replica: Replica, held: HeldTurn) -> bool:
    claim = replica.seat.claimed_by
    if claim is None or claim == held.arrival.turn:
        return False
    if state.held[claim].first:
        return True
    is_batch = held.arrival.service_class is ServiceClass.BATCH
    return is_batch or state.held[claim].arrival.service_class is held.arrival.service_class
