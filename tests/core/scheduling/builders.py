"""Short ways to say scheduler events in tests, and a world that takes them in and proves the state sound each time."""

from collections.abc import Sequence
from typing import TypeVar

from luftpause.core.model.ids import (
    CallerId,
    Instant,
    ModelName,
    PeerId,
    PrincipalId,
    ReplicaId,
    RunId,
    ToolCallId,
    ToolName,
    TurnId,
)
from luftpause.core.model.replicas import Endpoint, EngineKind, Load, ReplicaKind, ReplicaSpec
from luftpause.core.model.turns import ServiceClass, TurnShape, Usage
from luftpause.core.scheduling.actions import Action, ForgetRun, HoldTurn, PlaceTurn, RefuseTurn
from luftpause.core.scheduling.decide import decide
from luftpause.core.scheduling.events import (
    Event,
    KnownRun,
    OpenTurn,
    PeerResynced,
    ReplicaAdded,
    ReplicaProbed,
    RunPhase,
    TurnArrived,
    TurnFailed,
    TurnFinished,
)
from luftpause.core.scheduling.invariants import check
from luftpause.core.scheduling.reasons import HoldReason, PlacedBecause
from luftpause.core.scheduling.state import Limits, Run, State, empty_state

Expected = TypeVar("Expected")

INTERACTIVE = ServiceClass.INTERACTIVE
BATCH = ServiceClass.BATCH


def spec(
    name: str,
    *models: str,
    kind: ReplicaKind = ReplicaKind.GENERATIVE,
    engine: EngineKind = EngineKind.AUTO,
    url: str = "",
) -> ReplicaSpec:
    """Declare a replica that serves `m` unless told otherwise."""
    return ReplicaSpec(
        replica=ReplicaId(name),
        endpoint=Endpoint(url=url or f"http://{name}.invalid"),
        models=tuple(ModelName(model) for model in models or ("m",)),
        kind=kind,
        engine=engine,
    )


def arrived(
    turn: str,
    run: str = "",
    *,
    batch: bool = False,
    caller: str = "anonymous",
    model: str = "m",
    kind: ReplicaKind = ReplicaKind.GENERATIVE,
    peer: str = "p",
    principal: str = "anonymous",
    age_s: float = 0.0,
    shape: TurnShape = TurnShape.IN_RUN,
    parent: str | None = None,
) -> TurnArrived:
    """Offer a turn; its run is named after it unless told otherwise."""
    return TurnArrived(
        turn=TurnId(turn),
        peer=PeerId(peer),
        run=RunId(run or f"run-{turn}"),
        model=ModelName(model),
        kind=kind,
        service_class=BATCH if batch else INTERACTIVE,
        caller=CallerId(caller),
        principal=PrincipalId(principal),
        age_s=age_s,
        shape=shape,
        parent=None if parent is None else RunId(parent),
    )


def finished(
    turn: str,
    *,
    tools: int | Sequence[str] = 0,
    tokens: int | None = None,
    cached: int | None = None,
    restore_s: float | None = None,
) -> TurnFinished:
    """End a turn that was answered, with calls of these tools, or with so many of tools without a name.

    `tokens`: of its prompt, `cached` so many of them; its answer was of 10. `restore_s`: it had its KV read back first.
    """
    names = () if isinstance(tools, int) else tuple(map(ToolName, tools))
    count = tools if isinstance(tools, int) else len(tools)
    calls = tuple(ToolCallId(f"{turn}-call-{number}") for number in range(count))
    finish = "tool_calls" if count else "stop"
    usage = None if tokens is None else Usage(prompt_tokens=tokens, completion_tokens=10, cached_tokens=cached)
    return TurnFinished(
        turn=TurnId(turn), finish=finish, usage=usage, tool_calls=calls, tools=names, restore_s=restore_s
    )


def failed(turn: str, *, retry_after_s: float | None = None) -> TurnFailed:
    """End a turn that broke, or whose engine asked to be left alone."""
    return TurnFailed(turn=TurnId(turn), cause="engine broke", retry_after_s=retry_after_s)


def probed(
    name: str, running: int = 0, waiting: int | None = None, *, healthy: bool = True, cause: str = ""
) -> ReplicaProbed:
    """Probe a replica; without `waiting` it reports no load."""
    load = None if waiting is None else Load(running=running, waiting=waiting)
    return ReplicaProbed(replica=ReplicaId(name), healthy=healthy, load=load, cause=cause)


def crowded(name: str) -> tuple[Event, Event]:
    """Give a replica one turn of somebody else's, and let its engine queue: it takes no more."""
    turn = open_turn(f"crowd-{name}", f"crowd-{name}", name)
    return PeerResynced(peer=PeerId(f"crowd-{name}"), turns=(turn,), runs=()), probed(name, running=1, waiting=1)


def open_turn(turn: str, run: str, replica: str, *, batch: bool = False) -> OpenTurn:
    """Tell of a turn in flight after a reconnect."""
    return OpenTurn(
        turn=TurnId(turn),
        run=RunId(run),
        replica=ReplicaId(replica),
        model=ModelName("m"),
        kind=ReplicaKind.GENERATIVE,
        service_class=BATCH if batch else INTERACTIVE,
        caller=CallerId("anonymous"),
        principal=PrincipalId("anonymous"),
    )


def known_run(
    run: str,
    replica: str,
    *,
    model: str = "m",
    phase: RunPhase = RunPhase.PAUSED,
    batch: bool = False,
    age_s: float = 0.0,
    tools: Sequence[str] = (),
    parent: str | None = None,
) -> KnownRun:
    """Tell of a run at rest after a reconnect."""
    return KnownRun(
        run=RunId(run),
        model=ModelName(model),
        phase=phase,
        replica=ReplicaId(replica),
        service_class=BATCH if batch else INTERACTIVE,
        caller=CallerId("anonymous"),
        principal=PrincipalId("anonymous"),
        age_s=age_s,
        tools=tuple(map(ToolName, tools)),
        parent=None if parent is None else RunId(parent),
    )


class World:
    """A scheduler that is told events by hand. `now` stands still until a test moves it."""

    def __init__(self, *replicas: ReplicaSpec, limits: Limits | None = None, healthy: bool = True) -> None:
        self.state: State = empty_state(limits or Limits())
        self.now = Instant(0.0)
        for replica in replicas:
            self.tell(ReplicaAdded(spec=replica))
            if healthy:
                self.tell(probed(replica.replica))

    def tell(self, event: Event) -> tuple[Action, ...]:
        """Take an event in, prove the state sound, return the orders."""
        decision = decide(self.state, event, self.now)
        check(decision.state)
        self.state = decision.state
        return decision.actions

    def tell_all(self, events: Sequence[Event]) -> tuple[Action, ...]:
        """Take events in one after the other; return all orders."""
        return tuple(action for event in events for action in self.tell(event))

    def later(self, seconds: float) -> None:
        """Let time pass."""
        self.now = Instant(self.now + seconds)

    def place(self, arrival: TurnArrived) -> str:
        """Offer a turn that must be placed at once; return where."""
        return only(self.tell(arrival), PlaceTurn).replica

    def hold(self, arrival: TurnArrived) -> HoldReason:
        """Offer a turn that must be held; return why."""
        return only(self.tell(arrival), HoldTurn).why

    def in_flight(self, name: str) -> int:
        """Return the turns in flight on a replica, none when nobody knows it."""
        replica = self.state.replicas.get(ReplicaId(name))
        return 0 if replica is None else replica.in_flight

    def run(self, run: str, model: str = "m") -> Run | None:
        """Return what is known of a run with a model, None when nobody knows it."""
        return self.state.runs.get((RunId(run), ModelName(model)))

    def phase(self, run: str, model: str = "m") -> RunPhase | None:
        """Return what a run is doing with a model, None when nobody knows it."""
        known = self.run(run, model)
        return None if known is None else known.phase


def only(actions: Sequence[Action], kind: type[Expected]) -> Expected:
    """Return the one and only action, which must be of the given kind."""
    assert len(actions) == 1, actions
    action = actions[0]
    assert isinstance(action, kind), action
    return action


def placed(actions: Sequence[Action]) -> list[tuple[str, str]]:
    """Return (turn, replica) of every placement, in order."""
    return [(action.turn, action.replica) for action in actions if isinstance(action, PlaceTurn)]


def reasons_placed(actions: Sequence[Action]) -> list[PlacedBecause]:
    """Return why each placement was made, in order."""
    return [action.why for action in actions if isinstance(action, PlaceTurn)]


def refused(actions: Sequence[Action]) -> list[str]:
    """Return the turns that were refused, in order."""
    return [action.turn for action in actions if isinstance(action, RefuseTurn)]


def forgotten(actions: Sequence[Action]) -> list[str]:
    """Return the runs that were forgotten, in order."""
    return [action.run for action in actions if isinstance(action, ForgetRun)]
