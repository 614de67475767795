"""The state, open for writing while one event is taken in.

The only place that writes the indices of `State`: each method changes one fact and every index over it. Nothing of a
draft is seen outside `decide`; `freeze` returns the new state, and the old one was never touched. Decides nothing,
but remembers which replicas may have gained room, so that the turns held for them are tried again.
"""

from collections.abc import Iterable

from luftpause.core.model.ids import Instant, ModelName, PeerId, ReplicaId, TurnId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.actions import Action
from luftpause.core.scheduling.affinity import away_from, candidates, delisted, enlisted, keeps_room, pool_of, tied_to
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.families import entered
from luftpause.core.scheduling.known import found
from luftpause.core.scheduling.lanes import Away, Line, stepped_out, stood_in
from luftpause.core.scheduling.parts import followed, recounted
from luftpause.core.scheduling.residency.uses import absence_of, gone_out, in_line, out_of_line
from luftpause.core.scheduling.standings import Change, Payer, Standings
from luftpause.core.scheduling.state import Bucket, Decision, HeldTurn, Part, Pool, Replica, Run, State, Turn
from luftpause.core.scheduling.working_set.seats import as_guest, booked_in, keeping, may_open_more, opened, unseated
from luftpause.core.scheduling.working_set.state import Seat


class Draft:
    """One event's changes. Create, change, `freeze`."""

    __slots__ = (
        "_actions",
        "_before",
        "_seen",
        "_seen_in",
        "_stirred",
        "away",
        "children",
        "held",
        "is_review_due",
        "lanes",
        "lapsed",
        "limits",
        "lineup",
        "models_of",
        "next_seq",
        "past",
        "peer_deadlines",
        "queue_bits",
        "replica_deadlines",
        "replicas",
        "residency",
        "run_counts",
        "run_deadlines",
        "runs",
        "serving",
        "standings",
        "tools",
        "turns",
        "untold",
        "working_set",
    )

    def __init__(self, state: State) -> None:
        self._before = state
        self.limits = state.limits
        self.replicas = state.replicas
        self.runs = state.runs
        self.models_of = state.models_of
        self.children = state.children
        self.turns = state.turns
        self.held = state.held
        self.serving = state.serving
        self.lanes = state.lanes
        self.away: Away = state.away
        self.lapsed = state.lapsed
        self.queue_bits = state.queue_bits
        self.standings = state.standings
        self.lineup = state.lineup
        self.run_counts = state.run_counts
        self.peer_deadlines = state.peer_deadlines
        self.run_deadlines = state.run_deadlines
        self.replica_deadlines = state.replica_deadlines
        self.next_seq = state.next_seq
        self.past = state.past
        self.tools = state.tools
        self.residency = state.residency
        self.working_set = state.working_set
        self.is_review_due = False
        self.untold: TurnId | None = None
        self._actions: list[Action] = []
        self._stirred: dict[ReplicaId, bool] = {}
        self._seen: Run | None = None
        self._seen_in = state.runs

    def freeze(self) -> Decision:
        """Return the new state, the old one if nothing changed, and the orders in the sequence they were given in."""
        if self.standings.resting:
            self.standings = self.standings.settled()
        return Decision(state=self._state(), actions=tuple(self._actions))

    def order(self, action: Action) -> None:
        """Give an order."""
        self._actions.append(action)

    def take_seq(self) -> int:
        """Return a number that no other thing of this state has."""
        seq = self.next_seq
        self.next_seq = seq + 1
        return seq

    @property
    def is_stirred(self) -> bool:
        """Whether any replica may have gained room for held turns."""
        return bool(self._stirred)

    def take_stirred(self) -> list[ReplicaId]:
        """Return the replicas that may have gained room for held turns, and forget them. No other has gained any."""
        stirred = [name for name, is_due in self._stirred.items() if is_due]
        self._stirred = {}
        return stirred

    def looked_at(self, replica: ReplicaId) -> None:
        """Note that a replica was tried after all that happened so far: it has gained no room since."""
        if replica in self._stirred:
            self._stirred[replica] = False  # it keeps its place, should it gain some

    def set_replica(self, replica: Replica) -> None:
        """Put a replica in place of its old self; whatever it serves is tried again."""
        self.replicas = self.replicas.set(replica.replica, replica)
        if self.held:
            self._stirred[replica.replica] = True

    def enlist(self, replica: Replica) -> None:
        """List a replica under all that it serves."""
        self.serving = enlisted(self.serving, self.replicas, replica)

    def withdraw(self, replica: Replica) -> None:
        """Take a replica off the lists of all that it serves, if it is on them: the exact inverse of `enlist`."""
        if not replica.draining:
            self.serving = delisted(self.serving, replica)

    def run_at(self, part: Part) -> Run | None:
        """Return what is known of a run with one model, and remember it: most that are looked up are changed next."""
        seen, runs = self._seen, self.runs
        if seen is None or self._seen_in is not runs or seen.run != part[0] or seen.model != part[1]:
            seen = found(runs, part)
            self._seen, self._seen_in = seen, runs
        return seen

    def set_run(self, run: Run) -> None:
        """Put a run in place of its old self, with its room, its deadline and the pools of its held turns."""
        part = run.part
        old = self.run_at(part)
        self.runs = self._seen_in = self.runs.set(part, run)
        self._seen = run
        if old is None:
            self.models_of = self.models_of.set(run.run, (*self.models_of.get(run.run, ()), run.model))
        self.run_counts = recounted(self.run_counts, self.runs, self.models_of, old, run)
        self.children = entered(self.children, old, run)
        if run.out_on is not None or (old is not None and old.out_on is not None):
            self.tools = followed(self.tools, old, run)
        if self.residency.models:
            self._follow_pause(run.model, old, run)
        self._keep_room(keeps_room(self.replicas, old), keeps_room(self.replicas, run))
        if run.kept or (old is not None and old.kept):
            self._keep_tokens(old, run)
        if run.at_rest and part not in self.run_deadlines.bucket_of:
            bucket = self.run_deadlines.bucket(run.rests_since + self.limits.run_idle_expiry_s)
            self.run_deadlines = self.run_deadlines.put(part, bucket)
        if run.held and old is not None and tied_to(self.replicas, old) != tied_to(self.replicas, run):
            for turn in run.held:
                self.reassign(turn)

    def drop_run(self, run: Run) -> None:
        """Forget a run with one model, where it has no held turns; turns in flight no longer change it."""
        for turn_id in run.turns:
            self.turns = self.turns.set(turn_id, self.turns[turn_id]._replace(in_run=False))
        self.runs = self.runs.delete(run.part)
        self.run_counts = recounted(self.run_counts, self.runs, self.models_of, run, None)
        self.tools = followed(self.tools, run, None)
        if self.residency.models:
            self._follow_pause(run.model, run, None)
            self.is_review_due |= absence_of(run) is not None
        self.children = entered(self.children, run, None)
        self._keep_room(keeps_room(self.replicas, run), None)
        self._keep_tokens(run, None)
        self.run_deadlines = self.run_deadlines.drop(run.part)
        self.working_set = self.working_set.without(run.part)
        models = tuple(model for model in self.models_of[run.run] if model != run.model)
        self.models_of = self.models_of.set(run.run, models) if models else self.models_of.delete(run.run)

    def arrival_of(self, turn: TurnId) -> TurnArrived | None:
        """Return who asked for what with an open turn, in flight or held; None when it is not open."""
        open_turn: Turn | HeldTurn | None = found(self.turns, turn)
        if open_turn is None and self.held:
            open_turn = self.held.get(turn)
        return None if open_turn is None else open_turn.arrival

    def expect_life(self, peer: PeerId, now: Instant) -> Bucket:
        """Return when an open turn of a dataplane is over if nothing is heard of it; it is looked at by then."""
        bucket = self.turn_bucket(now)
        if peer not in self.peer_deadlines.bucket_of:
            self.peer_deadlines = self.peer_deadlines.put(peer, bucket)
        return bucket

    def renew(self, turns: Iterable[TurnId], now: Instant) -> None:
        """Note a sign of life of those turns that are open. Most signs are too close to the last to move a deadline."""
        bucket = self.turn_bucket(now)
        for turn in turns:
            flies = found(self.turns, turn)
            if flies is not None:
                if flies.over_in != bucket:
                    self.turns = self.turns.set(turn, flies._replace(over_in=bucket))
            elif self.held and (waits := self.held.get(turn)) is not None and waits.over_in != bucket:
                self.held = self.held.set(turn, waits._replace(over_in=bucket))

    def enqueue(self, held: HeldTurn) -> None:
        """Let a turn wait."""
        self.held = self.held.set(held.arrival.turn, held)
        self.standings = self.standings.queued(held.payer, held.seq)
        if self.residency.models:
            self.residency, matters = in_line(self.residency, held)
            self.is_review_due |= matters
        self._stand_in_line(held)

    def dequeue(self, turn: TurnId) -> HeldTurn:
        """Take a turn out of its lane."""
        held = self.held[turn]
        if held.claims is not None:
            self.set_replica(opened(self.replicas[held.claims]))
        self.held = self.held.delete(turn)
        self._leave_line(held)
        self.standings = self.standings.unqueued(held.payer)
        if self.residency.models:
            self.residency, matters = out_of_line(self.residency, held)
            self.is_review_due |= matters
        return held

    def reassign(self, turn: TurnId) -> None:
        """Move a held turn to the pool that its run belongs to now."""
        held = self.held[turn]
        run = self.runs.get(held.arrival.part) if held.arrival.in_run else None
        pool = pool_of(self.replicas, run, held.arrival)
        away = away_from(self.replicas, run, pool)
        if pool != held.pool or away != held.away_from:
            held = self.unclaim(held)
            self._leave_line(held)
            held = held._replace(pool=pool, away_from=away)
            self.held = self.held.set(turn, held)
            self._stand_in_line(held)
            self.stir(pool)

    def stir(self, pool: Pool) -> None:
        """Let those who wait for any replica of a pool be tried again."""
        self._stirred.update([(each.replica, True) for each in candidates(self.replicas, self.serving, pool)])

    def charge(self, turn: Turn) -> None:
        """Count a turn as in flight: on its replica, for its caller."""
        replica, policy = self.replicas[turn.replica], self.limits.working_set
        in_flight, seat = replica.in_flight + 1, replica.seat
        if turn.tokens:
            turn = as_guest(self.standings, self.lineup, turn, policy)
            seat = booked_in(seat, turn)
        arrival = turn.arrival
        self.turns = self.turns.set(arrival.turn, turn)
        busier = replica._replace(
            in_flight=in_flight,
            peak=in_flight if in_flight > replica.peak else replica.peak,
            placed=replica.placed + 1,
            batch=replica.batch + (arrival.service_class is ServiceClass.BATCH),
            returning=replica.returning + turn.returning,
            seat=seat,
        )
        self.replicas = self.replicas.set(turn.replica, busier)
        if self.held and may_open_more(replica.seat, seat, turn):
            self._stirred[turn.replica] = True
        payer = arrival.principal, arrival.caller
        service = (0, 0) if policy is None else policy.weights.weighed(payer, turn.service)
        self._set_standings(self.standings.placed(payer, turn.seq, service, turn.tokens), payer)
        self.is_review_due |= self.residency.is_pressed

    def discharge(self, turn: Turn, seat: Seat | None = None, change: Change = (0, 0)) -> None:
        """The inverse of `charge`, with what its answer taught: its replica's seat, a change of what it was worth."""
        arrival = turn.arrival
        self.turns = self.turns.delete(arrival.turn)
        replica = self.replicas[turn.replica]
        if replica.in_flight == 1 and not replica.declared and replica.spec is not None:
            self.replicas = self.replicas.delete(turn.replica)
        else:
            seat = replica.seat if seat is None else seat
            lighter = replica._replace(
                in_flight=replica.in_flight - 1,
                batch=replica.batch - (arrival.service_class is ServiceClass.BATCH),
                returning=replica.returning - turn.returning,
                seat=unseated(seat, turn) if turn.tokens else seat,
            )
            self.set_replica(lighter)
        payer = arrival.principal, arrival.caller
        self._set_standings(self.standings.ended(payer, turn.tokens, change), payer)
        self.is_review_due |= self.residency.is_pressed

    def settle(self, payer: Payer, change: Change, tokens: int = 0) -> None:
        """Charge a payer's turn in flight with more or less than was thought: what it is worth, and `tokens` more."""
        self._set_standings(self.standings.settled_service(payer, change, tokens), payer)

    def charge_load(self, payer: Payer) -> None:
        """Count a load that a payer's turn forced as a turn of theirs in flight."""
        self._set_standings(self.standings.placed(payer, self.take_seq()), payer)

    def discharge_load(self, payer: Payer) -> None:
        """The inverse of `charge_load`."""
        self._set_standings(self.standings.ended(payer), payer)

    def unclaim(self, held: HeldTurn) -> HeldTurn:
        """Open the replica that is closed for a held turn, if one is; return the turn."""
        if held.claims is None:
            return held
        self.set_replica(opened(self.replicas[held.claims]))
        held = held._replace(claims=None)
        self.held = self.held.set(held.arrival.turn, held)
        return held

    def _state(self) -> State:
        before = self._before
        # All else changes only together with one of these.
        if (
            self.replicas is before.replicas
            and self.runs is before.runs
            and self.turns is before.turns
            and self.held is before.held
            and self.lapsed is before.lapsed
            and self.past is before.past
            and self.tools is before.tools
            and self.peer_deadlines is before.peer_deadlines
            and self.run_deadlines is before.run_deadlines
            and self.replica_deadlines is before.replica_deadlines
            and self.residency is before.residency
            and self.working_set is before.working_set
        ):
            return before
        return State(
            limits=self.limits,
            replicas=self.replicas,
            runs=self.runs,
            models_of=self.models_of,
            children=self.children,
            turns=self.turns,
            held=self.held,
            serving=self.serving,
            lanes=self.lanes,
            away=self.away,
            lapsed=self.lapsed,
            queue_bits=self.queue_bits,
            lineup=self.lineup,
            standings=self.standings,
            run_counts=self.run_counts,
            peer_deadlines=self.peer_deadlines,
            run_deadlines=self.run_deadlines,
            replica_deadlines=self.replica_deadlines,
            next_seq=self.next_seq,
            past=self.past,
            tools=self.tools,
            residency=self.residency,
            working_set=self.working_set,
        )

    def turn_bucket(self, now: Instant) -> Bucket:
        """Return when an open turn is over that was heard of now."""
        return self.peer_deadlines.bucket(now + self.limits.turn_timeout_s)

    def _follow_pause(self, model: ModelName, old: Run | None, new: Run | None) -> None:
        before, self.residency = self.residency, gone_out(self.residency, model, absence_of(old), absence_of(new))
        self.is_review_due |= before.is_pressed and self.residency is not before

    def _keep_room(self, before: Replica | None, after: Replica | None) -> None:
        if before is not None and (after is None or after.replica != before.replica):
            self.set_replica(before._replace(kept=before.kept - 1))
        if after is not None and (before is None or after.replica != before.replica):
            self.replicas = self.replicas.set(after.replica, after._replace(kept=after.kept + 1))

    def _keep_tokens(self, before: Run | None, after: Run | None) -> None:
        for home in keeping(self.replicas, before, after):
            self.set_replica(home)

    def _set_standings(self, standings: Standings, payer: Payer) -> None:
        """Put the standings of a payer's parties in place of the old ones, and move those that wait."""
        old, self.standings = self.standings, standings
        if standings.waiting:
            self.lineup = self.lineup.followed(old, standings, payer)

    def _stand_in_line(self, held: HeldTurn) -> None:
        line = Line(self.lanes, self.away, self.queue_bits, self.lineup)
        self._set_line(stood_in(line, held, self.standings.of_payer(held.payer)))

    def _leave_line(self, held: HeldTurn) -> None:
        line = Line(self.lanes, self.away, self.queue_bits, self.lineup)
        self._set_line(stepped_out(line, held, self.standings.of_payer(held.payer)))

    def _set_line(self, line: Line) -> None:
        self.lanes, self.away = line.lanes, line.away
        self.queue_bits, self.lineup = line.queue_bits, line.lineup
