"""All that the scheduler knows, as values: replicas, runs, turns in flight, held turns, and the indices over them.

Nothing here decides. `draft.py` is the only writer and keeps the indices in step; `invariants.py` proves that they
equal a scan of the facts. `Map` is persistent: an older state stays valid while a newer one is made from it.

What every turn makes anew is a named tuple: as immutable as a frozen dataclass, and made in a third of the time. Make
and change them by name all the same.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from immutables import Map

from luftpause.core.model.charges import Charge
from luftpause.core.model.ids import (
    CallerId,
    Instant,
    ModelName,
    PeerId,
    PrincipalId,
    ReplicaId,
    RunId,
    ToolName,
    TurnId,
)
from luftpause.core.model.replicas import EngineKind, Load, Priorities, ReplicaKind, ReplicaSpec
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.actions import Action
from luftpause.core.scheduling.events import RunPhase, TurnArrived
from luftpause.core.scheduling.lineup import Lineup
from luftpause.core.scheduling.places import Place, Places
from luftpause.core.scheduling.ranking import Bits
from luftpause.core.scheduling.reasons import PlacedBecause
from luftpause.core.scheduling.residency.state import Residency, ResidencyLimits
from luftpause.core.scheduling.standings import Payer, Standings
from luftpause.core.scheduling.tool_history import Tools, open_step_s
from luftpause.core.scheduling.wheel import Wheel, expiry_step_s
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.state import LEASE_STEP_S, Measure, Seat, WorkingSet

Service: TypeAlias = tuple[ReplicaKind, ModelName]
"""What a replica offers and a turn asks for."""

Pool: TypeAlias = ReplicaId | Service
"""Where a held turn may go: its home replica and nowhere else, or any replica with that kind and model."""

Queue: TypeAlias = tuple[ServiceClass, Pool]
"""Held turns of one class and pool: its lanes are served in fair order."""

Lane: TypeAlias = tuple[ServiceClass, PrincipalId, CallerId]
"""Held turns of one pool that differ by arrival only: where the first fits not, none does."""

Part: TypeAlias = tuple[RunId, ModelName]
"""A run as far as one model takes part in it: what one model has cached, and waits for, is none of another's."""

Life: TypeAlias = tuple[ReplicaId, int]
"""A replica in one of its epochs."""

Bucket: TypeAlias = int
"""A deadline, rounded up as a `Wheel` does it."""

LAPSED_MAX = 1024
"""Turns given up for want of a sign of life that are remembered, those placed last."""
REOPENING_STEP_S = 0.125
"""A closed replica opens at most this much too late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an operator may set; times in seconds.

    Attributes:
        turn_timeout_s: a turn without a sign of life for this long is over (its dataplane died, or nobody waits).
        run_idle_expiry_s: a run is forgotten this long after its last turn ended; it may start again, without affinity.
        retry_after_s_max: no engine closes its replica for longer, whatever a wrong header asks for.
        slow_start: turns that a replica may have in flight when it comes back from an outage: enough to keep any engine
            busy, and no more than the smallest of them run at once.
        residency: for models that launchers load.
        working_set: for the policy of that name; None: the policy is `turn-admission`.
    """

    turn_timeout_s: float = 600.0
    run_idle_expiry_s: float = 1800.0
    retry_after_s_max: float = 300.0
    slow_start: int = 4
    residency: ResidencyLimits = field(default_factory=ResidencyLimits)
    working_set: WorkingSetLimits | None = None


class Window(NamedTuple):
    """How many turns a replica may have in flight until it has proved that it bears more. `windows.py` has the rules.

    Attributes:
        size: turns in flight that it allows, at least one.
        refused_at: turns in flight when its engine refused one; None for the slow start after an outage.
        answered: turns answered whole since it last grew; counted after a refusal only.
    """

    size: int
    refused_at: int | None = None
    answered: int = 0


class Replica(NamedTuple):
    """Something that takes turns: what was declared, what the last probe saw, what runs there.

    Attributes:
        spec: None while only a dataplane spoke of it and nobody has declared it.
        declared: False once it was removed; it stays while turns are in flight there.
        order: smaller was declared earlier; keeps its value when the declaration is replaced.
        epoch: which of its lives this is. A run that was bound in an earlier one has lost its prefix.
        seen_healthy: whether any probe ever found it healthy.
        load: as last reported; None when the engine reports none.
        in_flight: turns placed here that have not ended.
        kept: interactive runs of this epoch that are paused here with no turn waiting: batch leaves them room.
        placed: turns ever placed here.
        why: what made its last probe fail, for people; empty while it is healthy or was never probed.
        closed_until: its engine asked to be left alone until then. `batch`: those of the turns in flight that are.
        returning: turns of interactive runs back from a tool when it was full: batch awaits their first token.
        window: what it may have in flight for now, after an outage or a refusal; None while it may take any number.
        peak: the most turns that it had in flight since its last report: none of these is foreign (see `foreign.py`).
        surplus: requests beyond those in its last report; None before the first one of this epoch.
        foreign: requests that others sent to its engine past us, as far as two reports agree.
        heard_at: when its last report came.
        draining: its model makes room for another or is unloaded: it takes no new turns.
        seat: its memory, for policy `working-set`.
        priorities: in which order its engine takes them, as its last probe found; None where it takes none.
        ill_since: when the first of its last probes failed, all of which did; None while it is healthy or not probed.
        prompt_tokens: as its engine counted them last in this life.
    """

    replica: ReplicaId
    spec: ReplicaSpec | None
    declared: bool
    order: int
    epoch: int
    engine: EngineKind = EngineKind.AUTO
    healthy: bool = False
    seen_healthy: bool = False
    load: Load | None = None
    in_flight: int = 0
    kept: int = 0
    placed: int = 0
    why: str = ""
    closed_until: Instant | None = None
    batch: int = 0
    returning: int = 0
    window: Window | None = None
    peak: int = 0
    surplus: int | None = None
    foreign: int = 0
    heard_at: Instant | None = None
    draining: bool = False
    seat: Seat = Seat()
    priorities: Priorities | None = None
    ill_since: Instant | None = None
    prompt_tokens: int | None = None

    def serves(self, service: Service) -> bool:
        """Say whether it is declared to offer this kind and model."""
        kind, model = service
        return self.declared and self.spec is not None and self.spec.kind is kind and model in self.spec.models


class Past(NamedTuple):
    """What a scheduler before us knew of a replica: see the fields of `Replica` and of its seat."""

    placed: int
    window: Window | None
    speed: float = 0.0
    bears: int | None = None


class Run(NamedTuple):
    """An agent's conversation with one model, as far as scheduling cares. A run that asks several has one for each.

    Attributes:
        service_class: of the turn that arrived last.
        home: where its last turn ran; None before the first.
        home_epoch: the epoch of its home that holds its prefix.
        turns: its turns in flight, in order of placement.
        held: its turns that wait here, in order of arrival.
        paused: the turn that ended last asked for tools; `replied`: was answered without any, and none followed yet.
        ended_at: when the last turn ended or left the queue.
        parent: the run that it was begun by, as its turn that arrived last and named one says.
        out_on: the tool that its pause will teach, from the end of the turn that called it to the next one's arrival;
            None while that turn was answered already, or nobody knows what it called.
        waited_at: when a run that it was waiting for was last seen at work; None where that was never looked at.
        measure: what its last answered turn came to, in tokens.
        kept: tokens that its home keeps for it while it is out; for policy `working-set`, as is what follows.
        kept_until: when its home ceases to do so, and it is `loose`: it may move, paused or not.
    """

    run: RunId
    model: ModelName
    principal: PrincipalId
    caller: CallerId
    service_class: ServiceClass
    ended_at: Instant
    parent: RunId | None = None
    home: ReplicaId | None = None
    home_epoch: int = 0
    turns: tuple[TurnId, ...] = ()
    held: tuple[TurnId, ...] = ()
    paused: bool = False
    replied: bool = False
    out_on: ToolName | None = None
    waited_at: Instant | None = None
    measure: Measure = Measure()
    kept: int = 0
    kept_until: Instant | None = None
    loose: bool = False

    @property
    def part(self) -> Part:
        """By what it is found."""
        return self.run, self.model

    @property
    def phase(self) -> RunPhase:
        """Generating if any turn is in flight, else what the turn that ended last left behind."""
        if self.turns:
            return RunPhase.GENERATING
        return RunPhase.PAUSED if self.paused else RunPhase.IDLE

    @property
    def at_rest(self) -> bool:
        """Nothing of it is in flight or held: only then does its idle time count."""
        return not self.turns and not self.held

    @property
    def rests_since(self) -> Instant:
        """From when its idle time counts, while it is at rest: waiting for runs that are at work is not idle."""
        return self.ended_at if self.waited_at is None or self.waited_at < self.ended_at else self.waited_at


class Turn(NamedTuple):
    """A turn in flight.

    Attributes:
        arrival: who asked for what.
        seq: order of placement.
        in_run: whether its end changes its run: not if it stands alone, nor once the run has ended.
        over_in: when it is over if nothing is heard of it.
        returning: batch waits for its first token (see `Replica.returning`).
        tokens: that its replica is charged with, for policy `working-set`, as is what follows; `charge` is of these.
        service: what its payer is charged with, tenths of a token.
        expects: tokens of its prompt that it is sure to find in its replica's cache, as far as we know.
        first_s: how long after `placed_at` its first token came; until `late_at` that is awaited.
        asked_back: it was recalled; it `stays` where its dataplane said that it cannot come back.
        guest: others make way for it, see `working_set/guests.py`.
    """

    arrival: TurnArrived
    replica: ReplicaId
    why: PlacedBecause
    held_s: float
    seq: int
    in_run: bool
    over_in: Bucket
    returning: bool = False
    tokens: int = 0
    service: int = 0
    expects: int = 0
    placed_at: Instant = Instant(0.0)
    first_s: float | None = None
    late_at: Instant = Instant(0.0)
    asked_back: bool = False
    stays: bool = False
    guest: bool = False
    charge: Charge | None = None


class HeldTurn(NamedTuple):
    """A turn that waits here.

    Attributes:
        arrived_at: counts what it waited elsewhere before.
        seq: breaks ties. In its lane it counts as arrived at `ranked_at`.
        away_from: the home, in that life, which it is to wait for once that takes turns again; None while at its place.
        over_in: when it is over if nothing is heard of it.
        need: tokens that it needs where it begins; `claims` is the replica that is closed for it; `little`: a guest's.
        claimed_at: when it had a replica closed for the first time. `first`: better classes begin after it, too.
    """

    arrival: TurnArrived
    arrived_at: Instant
    seq: int
    pool: Pool
    ranked_at: Instant
    over_in: Bucket
    away_from: Life | None = None
    need: int = 0
    claims: ReplicaId | None = None
    claimed_at: Instant | None = None
    little: bool = False
    first: bool = False

    @property
    def lane(self) -> Lane:
        """Which lane of its pool it stands in."""
        return self.arrival.service_class, self.arrival.principal, self.arrival.caller

    @property
    def queue(self) -> Queue:
        """Which queue its lane belongs to."""
        return self.arrival.service_class, self.pool

    @property
    def payer(self) -> Payer:
        """Whom it is accounted to."""
        return self.arrival.principal, self.arrival.caller

    @property
    def place(self) -> Place:
        """Where in the lane it stands."""
        return self.ranked_at, self.seq, self.arrival.turn


class State(NamedTuple):
    """The scheduler's whole knowledge. Facts first, then the indices over them.

    Attributes:
        peer_deadlines: when to look at a dataplane's open turns next: never after the first of them is over.
        run_deadlines: when to look at a part of a run next: never after it has been at rest for too long.
        replica_deadlines: when to look at a closed replica next: never later than a moment after it is to open.
        models_of: the models that take part in each run, in the order in which they were asked first.
        children: the parts of runs that each run is the parent of, whether it is known itself or not.
        serving: declared replicas by what they offer, in order of declaration, but for those that drain.
        lanes: held turns by pool and lane, each lane in order of arrival.
        away: held turns by the home that they are away from, with their places.
        lapsed: turns in flight that were given up for want of a sign of life: their dataplane may be frozen only.
        queue_bits: the bit of each queue with held turns: no other of them has it.
        standings: what each principal and each caller has had: turns in flight, and when it was served last.
        lineup: who waits, and in which queues, in fair order.
        run_counts: runs by phase and class, in the order of `parts.SEEN_IN_ORDER`, each counted once.
        next_seq: the next sequence number: order of declaration, arrival and placement, and epochs.
        past: what is remembered of replicas that have not been healthy since we were started.
        tools: how long runs stay out on each tool, learned; and, an index, how many are out on it now.
        residency: launchers, and which of their models are up.
        working_set: what policy `working-set` knows besides.
    """

    limits: Limits
    peer_deadlines: Wheel[PeerId]
    run_deadlines: Wheel[Part]
    replica_deadlines: Wheel[ReplicaId]
    working_set: WorkingSet
    replicas: Map[ReplicaId, Replica] = Map()
    runs: Map[Part, Run] = Map()
    models_of: Map[RunId, tuple[ModelName, ...]] = Map()
    children: Map[RunId, Map[Part, None]] = Map()
    turns: Map[TurnId, Turn] = Map()
    held: Map[TurnId, HeldTurn] = Map()
    serving: Map[Service, tuple[ReplicaId, ...]] = Map()
    lanes: Map[Pool, Map[Lane, Places]] = Map()
    away: Map[Life, Map[TurnId, Place]] = Map()
    lapsed: Map[TurnId, Turn] = Map()
    queue_bits: Map[Queue, Bits] = Map()
    standings: Standings = Standings()
    lineup: Lineup = Lineup()
    run_counts: tuple[int, ...] = (0,) * (len(RunPhase) * len(ServiceClass))
    next_seq: int = 0
    past: Map[ReplicaId, Past] = Map()
    tools: Tools = Tools()
    residency: Residency = Residency()


class Decision(NamedTuple):
    """What an event led to: the new state, and orders to perform in this sequence."""

    state: State
    actions: tuple[Action, ...]


def empty_state(limits: Limits) -> State:
    """Return the state of a scheduler that has just started."""
    return State(
        limits=limits,
        peer_deadlines=Wheel(step_s=expiry_step_s(limits.turn_timeout_s)),
        run_deadlines=Wheel(step_s=expiry_step_s(limits.run_idle_expiry_s)),
        replica_deadlines=Wheel(step_s=REOPENING_STEP_S),
        working_set=WorkingSet(leases=Wheel(step_s=LEASE_STEP_S), silences=Wheel(step_s=LEASE_STEP_S)),
        standings=Standings(clock=None if limits.working_set is None or not limits.working_set.by_service else 0),
        tools=Tools(step_s=open_step_s(limits.run_idle_expiry_s)),
    )


def without(turns: tuple[TurnId, ...], turn: TurnId) -> tuple[TurnId, ...]:
    """Return the turns but for one, which need not be among them."""
    if turn not in turns:
        return turns
    if len(turns) == 1:
        return ()
    position = turns.index(turn)
    return turns[:position] + turns[position + 1 :]
