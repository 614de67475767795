"""The arms `turn-admission` and `working-set`: the real scheduling core, told and obeyed as by its shell.

No engine and no agent is known here, only the pool and what was told.
"""

from collections import deque
from dataclasses import dataclass, replace
from typing import Final, assert_never

from luftpause.core.model.ids import (
    Instant,
    LauncherId,
    ModelName,
    PeerId,
    ReplicaId,
    RunId,
    ToolCallId,
    ToolName,
    TurnId,
)
from luftpause.core.model.models import RAM, Device, ModelSpec
from luftpause.core.model.replicas import Endpoint, EngineKind, Load, Priorities, ReplicaKind, ReplicaSpec
from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.actions import Action, ForgetRun, HoldTurn, PlaceTurn, RecallTurn, RefuseTurn
from luftpause.core.scheduling.decide import decide, next_deadline
from luftpause.core.scheduling.events import (
    AnswerGrew,
    Event,
    FirstTokenSeen,
    KnownRun,
    OpenTurn,
    PeerResynced,
    ReplicaAdded,
    ReplicaProbed,
    RunEnded,
    RunPhase,
    TurnArrived,
    TurnFailed,
    TurnFinished,
    TurnReturned,
    TurnsRenewed,
    TurnStays,
    WokeUp,
)
from luftpause.core.scheduling.invariants import check
from luftpause.core.scheduling.residency.actions import DropKv, LoadModel, UnloadModel
from luftpause.core.scheduling.residency.events import LauncherJoined, ModelDown, ModelUp
from luftpause.core.scheduling.state import Limits, State, empty_state
from luftpause.testkit.sim.account import Account
from luftpause.testkit.sim.clients import SimRun, SimTurn, TurnPhase
from luftpause.testkit.sim.model_account import ModelAccount
from luftpause.testkit.sim.pool import Pool
from luftpause.testkit.sim.setting import Setting
from luftpause.testkit.sim.working_account import WorkingSetAccount

PEER: Final = PeerId("sim")
BYTES_PER_TOKEN: Final = 4
STREAMED_BYTES: Final = 200
"""What a token of an answer comes to as an engine streams it: an event of its own."""


class TurnAdmission:
    """The scheduling core, with the policy that its limits name.

    Args:
        pool: what it sees of the world.
        setting: what it is told of.
        limits: what an operator would set.
        checked: prove the state sound and audit every decision after each event.
        free: tell each turn as a run of its own. Then runs move as they like, and none has room kept: what is left is
            the order of held turns and the cap on replicas that queue.
    """

    def __init__(self, pool: Pool, setting: Setting, limits: Limits, *, checked: bool, free: bool = False) -> None:
        self._pool = pool
        self._free = free
        self.state: State = empty_state(limits)
        self._account = _account(setting, self.state.limits) if checked else None
        self._setting = setting
        self._open: dict[TurnId, SimTurn] = {}
        self._mailbox: deque[Event] = deque()
        self._busy = False
        self._wake_at: float | None = None
        self.events = 0
        self._rested: dict[RunId, _Rest] = {}
        self._names = [ReplicaId(f"replica-{number}") for number in range(len(setting.replicas))]
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._declare()

    def _declare(self) -> None:
        setting = self._setting
        for name, replica in zip(self._names, setting.replicas, strict=True):
            if replica.launch is None:
                self._tell(ReplicaAdded(spec=_spec(name, replica.models)))
        if setting.is_launched:
            self._tell(_launcher(setting))

    def offered(self, turn: SimTurn) -> None:
        """Tell that it arrived."""
        self._open[turn.turn_id] = turn
        self._rested.pop(turn.run.run_id, None)
        self._offer(turn)

    def _offer(self, turn: SimTurn) -> None:
        plan = turn.run.plan
        self._tell(
            TurnArrived(
                turn=turn.turn_id,
                peer=PEER,
                run=self._run_of(turn),
                model=plan.model,
                kind=ReplicaKind.GENERATIVE,
                service_class=plan.service_class,
                caller=plan.caller,
                principal=plan.principal,
                parent=plan.parent,
                prompt_bytes=turn.prompt_tokens * BYTES_PER_TOKEN,
                age_s=self._pool.now - turn.offered_at,
                recalls=turn.recalls,
            )
        )

    def spoke(self, turn: SimTurn, grown: int = 0) -> None:
        """Tell that its answer has begun, or how long it has become."""
        if grown:
            self._tell(AnswerGrew(turn=turn.turn_id, reply_bytes=grown * STREAMED_BYTES))
        else:
            self._tell(FirstTokenSeen(turn=turn.turn_id))

    def finished(self, turn: SimTurn) -> None:
        """Tell with what it ended."""
        del self._open[turn.turn_id]
        leg = turn.run.leg
        usage = Usage(
            prompt_tokens=turn.prompt_tokens, completion_tokens=leg.reply_tokens, cached_tokens=turn.cached_tokens
        )
        ended = TurnFinished(
            turn=turn.turn_id, finish="stop", usage=usage, reply_bytes=leg.reply_tokens * STREAMED_BYTES
        )
        if self._free:
            self._tell(ended)
            self._tell(RunEnded(run=self._run_of(turn)))
            return
        paused = leg.paused and not turn.run.plan.tools_in_text
        tools = (leg.tool,) if paused and leg.tool else ()
        self._rested[turn.run.run_id] = _Rest(turn, self._pool.now, paused=paused, tools=tools)
        if not paused:
            self._tell(ended)
            return
        calls = (ToolCallId(f"call-{turn.key}"),)
        self._tell(replace(ended, finish="tool_calls", tool_calls=calls, tools=tools))

    def failed(self, turn: SimTurn, cause: str) -> None:
        """Tell why."""
        del self._open[turn.turn_id]
        if not self._free:
            self._rested[turn.run.run_id] = _Rest(turn, self._pool.now, paused=False, tools=())
        self._tell(TurnFailed(turn=turn.turn_id, cause=cause))

    def run_ended(self, run: SimRun) -> None:
        """Tell that it will not come back."""
        self._rested.pop(run.run_id, None)
        if not self._free:
            self._tell(RunEnded(run=run.run_id))

    def probed(self, replica: int, load: tuple[int, int, int] | None) -> None:
        """Tell what was seen."""
        engine = self._setting.replicas[replica].engine
        seen = None
        if load is not None:
            running, waiting, read = load
            seen = Load(running=running, waiting=waiting, kv_tokens=engine.kv_tokens, prompt_tokens=read)
        takes = Priorities.LOWER_FIRST if engine.queue == "priority" else None
        self._tell(ReplicaProbed(replica=self._names[replica], healthy=load is not None, load=seen, priorities=takes))

    def loaded(self, replica: int) -> None:
        """Tell that its model is up."""
        sim = self._setting.replicas[replica]
        memory = 0 if sim.launch is None else sim.launch.memory
        self._tell(ModelUp(model=sim.models[0], replica=_spec(self._names[replica], sim.models), memory=memory))

    def unloaded(self, replica: int) -> None:
        """Tell that its model is gone."""
        self._tell(ModelDown(model=self._setting.replicas[replica].models[0]))

    def renewed(self) -> None:
        """Tell which turns are open."""
        if self._open:
            self._tell(TurnsRenewed(turns=tuple(self._open)))

    def woke_up(self) -> None:
        """Tell that a deadline passed."""
        self._wake_at = None
        self._tell(WokeUp())

    def restarted(self) -> None:
        """Forget everything; then the dataplane tells its ledger, and offers what was held."""
        self.state = empty_state(self.state.limits)
        if self._account is not None:
            self._account = _account(self._setting, self.state.limits)
        self._wake_at = None
        self._declare()
        sent = tuple(self._open_turn(turn) for turn in self._open.values() if turn.phase is TurnPhase.SENT)
        runs = tuple(self._known_run(rest) for rest in self._rested.values())
        self._tell(PeerResynced(peer=PEER, turns=sent, runs=runs))
        for turn in [turn for turn in self._open.values() if turn.phase is TurnPhase.OFFERED]:
            self._offer(turn)

    def _open_turn(self, turn: SimTurn) -> OpenTurn:
        plan = turn.run.plan
        return OpenTurn(
            turn=turn.turn_id,
            run=self._run_of(turn),
            replica=self._names[turn.replica],
            model=plan.model,
            kind=ReplicaKind.GENERATIVE,
            service_class=plan.service_class,
            caller=plan.caller,
            principal=plan.principal,
            parent=plan.parent,
        )

    def _known_run(self, rest: "_Rest") -> KnownRun:
        plan = rest.turn.run.plan
        return KnownRun(
            run=plan.run,
            model=plan.model,
            phase=RunPhase.PAUSED if rest.paused else RunPhase.IDLE,
            replica=self._names[rest.turn.replica],
            service_class=plan.service_class,
            caller=plan.caller,
            principal=plan.principal,
            age_s=self._pool.now - rest.since,
            tools=rest.tools,
            parent=plan.parent,
        )

    def _run_of(self, turn: SimTurn) -> RunId:
        return RunId(turn.turn_id) if self._free else turn.run.run_id

    def _take_back(self, turn: SimTurn) -> None:
        """Do as a dataplane does: ask its engine, and offer the turn again."""
        name = turn.turn_id
        if not self._pool.take_back(turn):
            self._tell(TurnStays(turn=name))
            return
        del self._open[name]
        turn.given_back()
        self._open[turn.turn_id] = turn
        self._tell(TurnReturned(turn=name))
        self._offer(turn)

    def at_rest(self) -> None:
        """Check that nothing is open."""
        assert not self._open, f"never ended: {list(self._open)}"
        assert not self.state.turns, f"in flight at rest: {list(self.state.turns)}"
        assert not self.state.held, f"held at rest: {list(self.state.held)}"

    def _tell(self, event: Event) -> None:
        """Take events in one after the other, as a mailbox does: what an action leads to comes after its decision."""
        self._mailbox.append(event)
        if self._busy:
            return
        self._busy = True
        while self._mailbox:
            self._take_in(self._mailbox.popleft())
        self._busy = False

    def _take_in(self, event: Event) -> None:
        self.events += 1
        now = Instant(self._pool.now)
        decision = decide(self.state, event, now)
        self.state = decision.state
        if self._account is not None:
            check(decision.state)
            self._account.take(event, now, decision.actions)
        for action in decision.actions:
            self._perform(action)
        deadline = next_deadline(decision.state)
        if deadline is not None and (self._wake_at is None or deadline < self._wake_at):
            self._wake_at = deadline
            self._pool.wake_at(deadline)

    def _perform(self, action: Action) -> None:
        match action:
            case PlaceTurn(charge=charge):
                turn = self._open[action.turn]
                turn.priority = action.priority or 0
                turn.spoken_of = -(-charge.reply_bytes // STREAMED_BYTES) if charge is not None else 0
                self._pool.send(turn, self._numbers[action.replica])
            case RecallTurn():
                self._take_back(self._open[action.turn])
            case RefuseTurn():
                self._pool.refuse(self._open.pop(action.turn))
            case LoadModel(model=model):
                self._pool.load(self._setting.serving(model)[0])
            case UnloadModel(model=model):
                self._pool.unload(self._setting.serving(model)[0])
            case HoldTurn() | ForgetRun() | DropKv():
                pass
            case _:
                assert_never(action)


@dataclass(frozen=True, slots=True)
class _Rest:
    """A run between its turns, as the dataplane's ledger has it: its last turn, and since when."""

    turn: SimTurn
    since: float
    paused: bool
    tools: tuple[ToolName, ...]


def _account(setting: Setting, limits: Limits) -> Account | ModelAccount:
    if setting.is_launched:
        return ModelAccount(limits.residency)
    return Account(limits) if limits.working_set is None else WorkingSetAccount(limits)


def _launcher(setting: Setting) -> LauncherJoined:
    """Declare all that a launcher could load. Nothing is unloaded for being idle."""
    catalogue = tuple(
        ModelSpec(model=replica.models[0], memory=replica.launch.memory, load_s=replica.launch.load_s)
        for replica in setting.replicas
        if replica.launch is not None
    )
    devices = (Device(device=RAM, memory=setting.memory),)
    return LauncherJoined(launcher=LauncherId("sim"), devices=devices, catalogue=catalogue)


def _spec(name: ReplicaId, models: tuple[ModelName, ...]) -> ReplicaSpec:
    endpoint = Endpoint(url=f"http://{name}.invalid")
    return ReplicaSpec(replica=name, endpoint=endpoint, models=models, engine=EngineKind.SGLANG)
