"""One turn's life: it arrives, is placed, held or refused, and ends; and what that does to its run.

Knows the steps, not the rules: where a turn may go is in `affinity`, whether there is room in `admission`, which held
turn is next in `fairness`.
"""

from dataclasses import replace

from luftpause.core.model.ids import Instant, ModelName, RunId, TurnId
from luftpause.core.model.refusals import Refusal, RefusalReason, no_such_model
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.model.turns import TurnShape
from luftpause.core.scheduling import lapsed
from luftpause.core.scheduling.actions import ForgetRun, HoldTurn, RefuseTurn
from luftpause.core.scheduling.admission import takes_back, why_held
from luftpause.core.scheduling.affinity import away_from, bound_to, candidates, choose, nearest, pool_of, returns_to
from luftpause.core.scheduling.ages import age_in, instant_before
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.events import TurnArrived, TurnFinished
from luftpause.core.scheduling.fairness import drain, somebody_waits
from luftpause.core.scheduling.known import known
from luftpause.core.scheduling.placing import ordered, place
from luftpause.core.scheduling.reasons import HoldReason
from luftpause.core.scheduling.residency import parking
from luftpause.core.scheduling.residency.holding import why_model_held
from luftpause.core.scheduling.residency.refusing import goes_along, why_refused
from luftpause.core.scheduling.residency.state import Model
from luftpause.core.scheduling.residency.uses import left, model_of
from luftpause.core.scheduling.services import KIND_WORDS, offered
from luftpause.core.scheduling.state import HeldTurn, Pool, Replica, Run, State, Turn, without
from luftpause.core.scheduling.windows import after_answer
from luftpause.core.scheduling.working_set.awaiting import let_go_above
from luftpause.core.scheduling.working_set.books import asked_on, is_guest, learn, need_of, note_first_token, rested
from luftpause.core.scheduling.working_set.leases import watch_wait
from luftpause.core.scheduling.working_set.recalling import ask_back
from luftpause.core.scheduling.working_set.sending import gives_way, stand_in, where_now
from luftpause.core.scheduling.working_set.trees import as_in_its_tree, ranked_at
from luftpause.core.scheduling.working_set.waiting import why_it_waits


def arrive(draft: Draft, arrival: TurnArrived, now: Instant) -> None:
    """Place, hold or refuse a turn that was offered; repeat the answer to one that is open already."""
    if draft.arrival_of(arrival.turn) is not None:
        _answer_again(draft, arrival.turn, now)
        return
    model = model_of(draft.residency, arrival.kind, arrival.model) if draft.residency.models else None
    refusal = None if (arrival.kind, arrival.model) in draft.serving else _why_refused(draft, arrival, model, now)
    if refusal is not None:
        draft.order(RefuseTurn(turn=arrival.turn, why=refusal))
        return
    arrival = _as_it_counts(draft, arrival)
    policy = draft.limits.working_set
    if policy is not None and policy.trees:
        arrival = as_in_its_tree(draft, arrival)
        if arrival.parent is not None and arrival.in_run and let_go_above(draft, arrival):
            drain(draft, now)  # those who waited for that room come first
    run = _run_of(draft, arrival, now)
    arrived_at = instant_before(now, arrival.age_s)
    if run is not None:
        run = _back(draft, run, arrived_at, now)
    pool = pool_of(draft.replicas, run, arrival)
    chosen = _choose(draft, arrival, run, pool, now)
    if chosen is not None:
        place(draft, arrival, run, chosen, now)
        return
    over_in = draft.expect_life(arrival.peer, now)
    away = away_from(draft.replicas, run, pool)
    ranked = ranked_at(draft, arrival, run, arrived_at) if policy is not None and policy.trees else arrived_at
    need = need_of(draft, arrival, run)
    little = is_guest(draft, arrival, need)
    held = HeldTurn(arrival, arrived_at, draft.take_seq(), pool, ranked, over_in, away, need, little=little)
    _wait(draft, held, run, now)
    if model is None and policy is None:
        draft.order(HoldTurn(turn=arrival.turn, why=_why(draft, draft.held[arrival.turn], now)))
    else:
        draft.untold = arrival.turn  # it is told once it is known what becomes of its model, or of who had a claim


def tell(draft: Draft, turn: TurnId, now: Instant) -> None:
    """Tell a held turn why it waits; one that waits no more has been told."""
    held = draft.held.get(turn)
    if held is not None:
        draft.order(HoldTurn(turn=turn, why=_why(draft, held, now)))


def unknown_model(draft: Draft, kind: ReplicaKind, model: ModelName) -> Refusal:
    """Return the refusal of a turn whose model no declared replica of its kind serves, and no launcher could."""
    known = {each for of_kind, each in offered(draft.serving, draft.residency) if of_kind is kind}
    message = no_such_model(f"{KIND_WORDS[kind]} replica", model, known)
    return Refusal(reason=RefusalReason.UNKNOWN_MODEL, message=message)


def dropped(draft: Draft, model: Model) -> Refusal:
    """Return the refusal of a turn whose model is declared no longer: it is known no more, or its launcher ends."""
    if draft.residency.launchers[model.launcher].is_ending:
        return goes_along(model)
    return unknown_model(draft, model.spec.kind, model.name)


def end(draft: Draft, turn: TurnId, now: Instant, *, finished: TurnFinished | None = None) -> None:
    """End an open turn, in flight or held; an unknown one changes nothing.

    Args:
        draft: what to change.
        turn: the turn that is over.
        now: the present.
        finished: how its engine answered it whole, so that its replica holds the run's prefix for certain.
    """
    in_flight = known(draft.turns, turn)
    if in_flight is not None:
        _end_in_flight(draft, in_flight, now, finished)
    elif turn in draft.held:
        leave_queue(draft, turn, now)


def is_news(state: State, turn: TurnId, now: Instant) -> bool:
    """Say whether the first token of a turn may change anything: as a rule nobody waits for it."""
    in_flight = known(state.turns, turn)
    if in_flight is None or in_flight.returning or (in_flight.tokens and in_flight.first_s is None):
        return True
    return in_flight.over_in != state.peer_deadlines.bucket(now + state.limits.turn_timeout_s)


def hear(draft: Draft, turn: TurnId, now: Instant) -> None:
    """Take in the first token of a turn; an unknown turn changes nothing."""
    in_flight = known(draft.turns, turn)
    if in_flight is not None and in_flight.returning:
        over_in = draft.turn_bucket(now)
        draft.turns = draft.turns.set(turn, in_flight._replace(returning=False, over_in=over_in))
        replica = draft.replicas[in_flight.replica]
        draft.set_replica(replica._replace(returning=replica.returning - 1))
    elif in_flight is not None and in_flight.tokens and in_flight.first_s is None:
        note_first_token(draft, in_flight, now)
    else:
        draft.renew((turn,), now)


def leave_queue(draft: Draft, turn: TurnId, now: Instant) -> HeldTurn:
    """Take a held turn out of the queue; its run keeps its phase."""
    held = draft.dequeue(turn)
    run = draft.runs.get(held.arrival.part)
    if run is not None and turn in run.held:
        draft.set_run(run._replace(held=without(run.held, turn), ended_at=now))
    return held


def end_run(draft: Draft, run_id: RunId, now: Instant, *, why: str) -> None:
    """Forget a run. Its held turns are refused; those in flight stay charged to their replica until they end."""
    models = draft.models_of.get(run_id, ())
    for _, turn in sorted((draft.held[turn].seq, turn) for model in models for turn in draft.runs[run_id, model].held):
        leave_queue(draft, turn, now)
        refusal = Refusal(reason=RefusalReason.RUN_ENDED, message=f"run '{run_id}' was ended while its turn was held")
        draft.order(RefuseTurn(turn=turn, why=refusal))
    for model in models:
        end_part(draft, draft.runs[run_id, model], now, why=why)


def end_part(draft: Draft, run: Run, now: Instant, *, why: str) -> None:
    """Forget a run with one model, where none of its turns is held; with its last model it is forgotten altogether."""
    _teach(draft, run, now, now, is_lost=True)
    if draft.lapsed:
        lapsed.leave_run(draft, run)
    draft.drop_run(run)
    if draft.residency.models:
        parking.forget(draft, run)
    if run.run not in draft.models_of:
        draft.order(ForgetRun(run=run.run, why=why))


def _why_refused(draft: Draft, arrival: TurnArrived, model: Model | None, now: Instant) -> Refusal | None:
    if model is None:
        return unknown_model(draft, arrival.kind, arrival.model)
    if model.is_dropped:
        return dropped(draft, model)
    return why_refused(draft, model, now)


def _choose(draft: Draft, arrival: TurnArrived, run: Run | None, pool: Pool, now: Instant) -> Replica | None:
    """Return the replica that takes a turn at once; None when it is to wait."""
    if arrival.shape is TurnShape.ERRAND:
        return nearest(candidates(draft.replicas, draft.serving, pool))
    if draft.limits.working_set is not None:
        return where_now(draft, arrival, run, pool, now)
    if somebody_waits(draft, pool, arrival.service_class):
        return None
    home = None if run is None else bound_to(draft.replicas, run)
    among = candidates(draft.replicas, draft.serving, pool)
    chosen = choose(among, arrival.service_class, None if home is None else home.replica)
    if chosen is None and home is not None and run is not None and pool == home.replica:
        return home if returns_to(run, home) and takes_back(home) else None
    return chosen


def _as_it_counts(draft: Draft, arrival: TurnArrived) -> TurnArrived:
    """Return a turn with an age that means something, and alone where it is aside and its run out on a tool."""
    if arrival.age_s != age_in(arrival.age_s):  # it goes into the state, which must be comparable and writable
        arrival = replace(arrival, age_s=age_in(arrival.age_s))
    if arrival.shape is TurnShape.ASIDE:
        run = draft.runs.get(arrival.part)
        if run is not None and run.paused:
            return replace(arrival, shape=TurnShape.ALONE)
    return arrival


def _back(draft: Draft, run: Run, arrived_at: Instant, now: Instant) -> Run:
    """Return a run whose next turn arrived, and learn how long it was out, whether that turn is placed or held."""
    if run.out_on is not None:
        _teach(draft, run, arrived_at, now)
    elif run.replied:
        asked_on(draft, run, arrived_at, now)
    if draft.limits.working_set is None or not gives_way(draft, run, now):
        return run
    drain(draft, now)  # whoever is owed its place comes first
    return draft.runs[run.part]


def _answer_again(draft: Draft, turn: TurnId, now: Instant) -> None:
    draft.renew((turn,), now)
    in_flight = draft.turns.get(turn)
    if in_flight is not None:
        draft.order(ordered(draft, in_flight, parking.seat_of(draft, in_flight)))
        return
    tell(draft, turn, now)


def _why(draft: Draft, held: HeldTurn, now: Instant) -> HoldReason:
    of_model = why_model_held(draft.residency, draft.serving, held.arrival, now) if draft.residency.models else None
    if of_model is not None:
        return of_model
    if draft.limits.working_set is not None:
        return why_it_waits(draft.replicas, draft.serving, draft.held, held, draft.limits)
    return why_held(held.pool, candidates(draft.replicas, draft.serving, held.pool), held.arrival)


def _run_of(draft: Draft, arrival: TurnArrived, now: Instant) -> Run | None:
    """Return the run as this arrival makes it, None for a turn that is in no run. A new run is not stored yet."""
    if not arrival.in_run:
        return None
    before = draft.run_at(arrival.part)
    if before is None:
        return Run(
            run=arrival.run,
            model=arrival.model,
            principal=arrival.principal,
            caller=arrival.caller,
            service_class=arrival.service_class,
            ended_at=now,
            parent=arrival.parent,
        )
    parent = before.parent if arrival.parent is None else arrival.parent
    if before.service_class is arrival.service_class and before.caller == arrival.caller and before.parent == parent:
        return before
    run = before._replace(caller=arrival.caller, service_class=arrival.service_class, parent=parent)
    if run.service_class is not before.service_class:
        # A run that turned to batch needs no room kept any more; those who waited for that room come first.
        draft.set_run(run)
        drain(draft, now)
        run = draft.runs[arrival.part]
    return run


def _end_in_flight(draft: Draft, turn: Turn, now: Instant, finished: TurnFinished | None) -> None:
    arrival, answered = turn.arrival, finished is not None
    if finished is not None:
        _widen(draft, draft.replicas[turn.replica])
        seat, change = learn(draft, turn, finished, now)
        draft.discharge(turn, seat, change)
    else:
        draft.discharge(turn)
    if draft.residency.of_replica:
        draft.residency = left(draft.residency, turn.replica, now)
    if draft.residency.models:
        parking.leave(draft, turn, finished, now)
    run = draft.run_at(arrival.part) if turn.in_run else None
    if run is None:
        return
    turns = without(run.turns, arrival.turn)
    home, home_epoch = run.home, run.home_epoch
    replica = known(draft.replicas, turn.replica)
    if answered and not turns and replica is not None and replica.declared:
        # It answered, so it lives and holds the prefix, whatever a probe said meanwhile.
        home, home_epoch = turn.replica, replica.epoch
    paused = finished is not None and bool(finished.tool_calls)
    if arrival.shape is TurnShape.ASIDE:
        paused = paused or run.paused
    tools = () if finished is None else finished.tools
    out_on = draft.tools.slowest(tools) if paused and not turns and not run.held else None
    run = run._replace(turns=turns, paused=paused, ended_at=now, home=home, home_epoch=home_epoch, out_on=out_on)
    if draft.limits.working_set is not None:
        run = rested(draft, run, turn, finished, now)
    draft.set_run(run)


def _wait(draft: Draft, held: HeldTurn, run: Run | None, now: Instant) -> None:
    draft.enqueue(held)
    if run is not None:
        draft.set_run(run._replace(held=(*run.held, held.arrival.turn), replied=False, out_on=None))
    if draft.limits.working_set is not None:
        stand_in(draft, draft.held[held.arrival.turn], now)
        ask_back(draft, draft.held[held.arrival.turn])
        if run is not None:
            watch_wait(draft, held, run, now)


def _teach(draft: Draft, run: Run, ended_at: Instant, now: Instant, *, is_lost: bool = False) -> None:
    """Learn from a run's pause, if it is out on a tool: it ended then, or was given up. The run stays as it is."""
    if run.out_on is not None:
        draft.tools = draft.tools.taught(run.out_on, max(0.0, ended_at - run.ended_at), now, is_lost=is_lost)


def _widen(draft: Draft, replica: Replica) -> None:
    if replica.window is not None:
        draft.set_replica(replica._replace(window=after_answer(replica, replica.window, draft.limits)))
