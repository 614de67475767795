"""Which phase each run is in, followed from decision to decision: held, loading, prefill, decode, tool, idle.

Knows neither how long changes are kept nor who looks at them.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from luftpause.core.model.ids import Instant, ModelName, RunId, TurnId
from luftpause.core.model.tool_names import A_PERSON
from luftpause.core.model.turns import TurnShape, Usage
from luftpause.core.scheduling.actions import Action, ForgetRun, HoldTurn, PlaceTurn, RefuseTurn
from luftpause.core.scheduling.events import (
    AnswerGrew,
    Event,
    FirstTokenSeen,
    OpenTurn,
    PeerResynced,
    TurnAbandoned,
    TurnArrived,
    TurnFailed,
    TurnFinished,
    TurnReturned,
    TurnsRenewed,
    TurnStays,
)
from luftpause.core.scheduling.known import known
from luftpause.core.scheduling.reasons import (
    LauncherAway,
    ModelLeaving,
    ModelLoading,
    ModelWanted,
    WaitingForMemory,
    explain,
)
from luftpause.core.scheduling.residency.state import ModelPhase
from luftpause.core.scheduling.state import Decision, State
from luftpause.core.scheduling.working_set.replies import is_cut

LANES_MAX: Final = 2000
"""So many runs are followed; beyond that the one at rest that changed longest ago is let go."""
DETAIL_MAX: Final = 120
ASKS_A_PERSON: Final = "a person is asked to allow a call"
PLACE_FREE: Final = "its place is not kept meanwhile"
CUT_OFF: Final = "its answer was cut off at our cap"


class Phase(Enum):
    """What a run is doing, or a launcher's model."""

    HELD = "held"
    LOADING = "loading"
    """A turn is held until its model is up; or, of a model, it is being loaded."""
    PREFILL = "prefill"
    DECODE = "decode"
    TOOL = "tool"
    IDLE = "idle"
    FAILED = "failed"
    """Idle, after its last turn failed."""
    UP = "up"
    LEAVING = "leaving"
    """Of a model: it drains, or its engine stops."""
    GONE = "gone"
    """Forgotten; of a model: down."""

    __hash__ = object.__hash__  # there is one object of each member; enum's own hash runs in Python at every look-up


class Spent(NamedTuple):
    """What a run has cost so far, as its engines counted."""

    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def plus(self, other: "Spent") -> "Spent":
        """Return the sum."""
        return Spent(
            self.turns + other.turns,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


_ONE_TURN: Final = Spent(1)
_PREFILL: Final = Phase.PREFILL
_DECODE: Final = Phase.DECODE
_TOOL: Final = Phase.TOOL
_FAILED: Final = Phase.FAILED
_AT_REST: Final = (Phase.IDLE, "")
"""Looking one up in its enum costs more than most that is done with it."""


class Lane:
    """A run, or a launcher's model, whose phases are told.

    Attributes:
        number: minted here, greater than that of every lane before.
        name: the run's id, or the model's name.
        model: of the run's first turn.
        turns: the phase of each of its open turns, and its detail.
        rest: the phase that it has without any.
        phase: what was told last, with `detail`.
    """

    def __init__(self, number: int, name: str, *, arrival: TurnArrived | None = None, model: str = "") -> None:
        self.number = number
        self.name = name
        self.is_model = arrival is None
        self.service_class = "" if arrival is None else arrival.service_class.value
        self.caller: str = "" if arrival is None else arrival.caller
        self.model: str = model if arrival is None else arrival.model
        self.parent: RunId | None = None if arrival is None else arrival.parent
        self.turns: dict[TurnId, tuple[Phase, str]] = {}
        self.rest: tuple[Phase, str] = _AT_REST
        self.phase = Phase.GONE
        self.detail = ""
        self.spent = Spent()


class Change(NamedTuple):
    """A lane went into a phase. `detail`: where, on what, or why; cut at DETAIL_MAX characters."""

    lane: Lane
    phase: Phase
    at: Instant
    detail: str


_OF_MODEL: Final = (ModelWanted, ModelLoading, WaitingForMemory, ModelLeaving, LauncherAway)
_MODEL_PHASES: Final = {
    ModelPhase.DOWN: Phase.GONE,
    ModelPhase.LOADING: Phase.LOADING,
    ModelPhase.UP: Phase.UP,
    ModelPhase.DRAINING: Phase.LEAVING,
    ModelPhase.STOPPING: Phase.LEAVING,
}
_RANK: Final = (Phase.DECODE, Phase.PREFILL, Phase.LOADING, Phase.HELD)
"""A run with several open turns is shown in the first of these that one of them is in."""


class Phases:
    """A `Witness` that tells each change of each lane, in order of time.

    Turns that stand alone have no phase, for they change no run.
    """

    def __init__(self, tell: Callable[[Change], None], *, lanes_max: int = LANES_MAX) -> None:
        self.told = 0
        """How many changes there ever were."""
        self._tell = tell
        self._lanes_max = lanes_max
        self._lanes_minted = 0
        self._of_turn: dict[TurnId, Lane] = {}
        self.runs: dict[RunId, Lane] = {}
        """The lane of each run that is followed; of those at rest, whose turns ended last stand last."""
        self.models: dict[ModelName, Lane] = {}

    def decided(self, before: State, event: Event, now: Instant, decision: Decision) -> None:
        """See `Witness`."""
        state = decision.state
        if isinstance(event, FirstTokenSeen):
            lane = self._of_turn.get(event.turn)
            if lane is not None and event.turn in state.turns:
                self._go_on(lane, event.turn, (_DECODE, lane.turns[event.turn][1]), now)
        elif isinstance(event, TurnFinished):
            pause = _pause(event, state) if event.tool_calls else self._rest(before, event.turn, _at_rest(event))
            self._ended(event.turn, pause, now, event.usage)
        elif not isinstance(event, TurnArrived):
            self._follow_others(before, event, now, state)
        for action in decision.actions:
            self._follow_order(action, state, now)
        if state.residency.models is not before.residency.models:
            self._follow_models(before, state, now)

    def _follow_others(self, before: State, event: Event, now: Instant, state: State) -> None:
        """Follow what happens more seldom than a turn that goes well."""
        if isinstance(event, TurnFailed):
            self._ended(event.turn, self._rest(before, event.turn, (_FAILED, "")), now)
        elif isinstance(event, TurnAbandoned):
            self._ended(event.turn, self._rest(before, event.turn, (Phase.IDLE, "its client left")), now)
        elif isinstance(event, TurnReturned):
            self._withdrawn(event.turn, now)
        elif isinstance(event, PeerResynced):
            self._sweep(state, now)
            for told in event.turns:
                self._resumed(told, state, now)
        elif not isinstance(event, (TurnsRenewed, TurnStays, AnswerGrew)) and (
            state.turns is not before.turns or state.held is not before.held
        ):
            self._sweep(state, now)

    def _follow_order(self, action: Action, state: State, now: Instant) -> None:
        if isinstance(action, PlaceTurn):
            placed = known(state.turns, action.turn)
            if placed is not None and placed.arrival.in_run:
                self._enter(self._lane_of(placed.arrival), action.turn, (_PREFILL, action.replica), now)
        elif isinstance(action, HoldTurn):
            held = state.held.get(action.turn)
            if held is not None and held.arrival.in_run:
                phase = Phase.LOADING if isinstance(action.why, _OF_MODEL) else Phase.HELD
                self._enter(self._lane_of(held.arrival), action.turn, (phase, explain(action.why)), now)
        elif isinstance(action, RefuseTurn):
            self._ended(action.turn, (_FAILED, "refused"), now)
        elif isinstance(action, ForgetRun):
            lane = self.runs.pop(action.run, None)
            if lane is not None:
                self._forget(lane, now)

    def _follow_models(self, before: State, state: State, now: Instant) -> None:
        for name, model in state.residency.models.items():
            old = before.residency.models.get(name)
            if old is not None and old.phase is model.phase:
                continue
            lane = self.models.get(name)
            if lane is None:
                lane = self.models[name] = Lane(self._minted(), name, model=name)
            self._show(lane, _MODEL_PHASES[model.phase], "", now)
            if model.phase is ModelPhase.UP:
                for turn in [each for each in self._of_turn if _waits_for(state, each, name)]:
                    self._enter(self._of_turn[turn], turn, (Phase.HELD, "its model is up"), now)
        for name in [name for name in self.models if name not in state.residency.models]:
            self._show(self.models.pop(name), Phase.GONE, "", now)

    def _resumed(self, told: OpenTurn, state: State, now: Instant) -> None:
        turn = state.turns.get(told.turn)
        if turn is not None and turn.arrival.in_run and told.turn not in self._of_turn:
            self._enter(self._lane_of(turn.arrival), told.turn, (Phase.DECODE, turn.replica), now)

    def _sweep(self, state: State, now: Instant) -> None:
        """End what is open here and nowhere else: its dataplane went, or it gave no sign of life."""
        for turn in [turn for turn in self._of_turn if turn not in state.turns and turn not in state.held]:
            self._ended(turn, (Phase.FAILED, "its door was lost"), now)

    def _lane_of(self, arrival: TurnArrived) -> Lane:
        lane = self.runs.get(arrival.run)
        if lane is None:
            lane = self.runs[arrival.run] = Lane(self._minted(), arrival.run, arrival=arrival)
        return lane

    def _minted(self) -> int:
        self._lanes_minted += 1
        return self._lanes_minted

    def _make_room(self, now: Instant) -> None:
        for run, lane in self.runs.items():
            if not lane.turns:
                del self.runs[run]
                self._show(lane, Phase.GONE, "", now)
                return

    def _enter(self, lane: Lane, turn: TurnId, phase: tuple[Phase, str], now: Instant) -> None:
        self._of_turn[turn] = lane
        self._go_on(lane, turn, phase, now)
        if len(self.runs) > self._lanes_max:
            self._make_room(now)

    def _go_on(self, lane: Lane, turn: TurnId, phase: tuple[Phase, str], now: Instant) -> None:
        lane.turns[turn] = phase
        self._show_turns(lane, phase if len(lane.turns) == 1 else _busiest(lane), now)

    def _ended(self, turn: TurnId, rest: tuple[Phase, str], now: Instant, usage: Usage | None = None) -> None:
        lane = self._of_turn.pop(turn, None)
        if lane is None:
            return
        del lane.turns[turn]
        lane.rest = rest
        if usage is not None:
            lane.spent = lane.spent.plus(Spent(1, usage.prompt_tokens, usage.completion_tokens))
        elif rest[0] is not _FAILED:
            lane.spent = lane.spent.plus(_ONE_TURN)
        self._show_turns(lane, _busiest(lane) if lane.turns else rest, now)

    def _rest(self, before: State, turn: TurnId, rest: tuple[Phase, str]) -> tuple[Phase, str]:
        """Return how a run rests after a turn that called nothing: out on its tool still, if that was aside."""
        lane, ended = self._of_turn.get(turn), known(before.turns, turn)
        is_aside = ended is not None and ended.arrival.shape is TurnShape.ASIDE
        return lane.rest if is_aside and lane is not None and lane.rest[0] is _TOOL else rest

    def _withdrawn(self, turn: TurnId, now: Instant) -> None:
        """Its turn was taken back: the run rests as it did before, for the moment until it is offered again."""
        lane = self._of_turn.pop(turn, None)
        if lane is not None:
            del lane.turns[turn]
            self._show_turns(lane, _busiest(lane) if lane.turns else lane.rest, now)

    def _show_turns(self, lane: Lane, shown: tuple[Phase, str], now: Instant) -> None:
        phase, detail = shown
        if lane.phase is phase and lane.detail == detail:
            return
        self._show(lane, phase, detail, now)
        if not lane.turns:
            run = RunId(lane.name)
            if self.runs.pop(run, None) is not None:
                self.runs[run] = lane

    def _show(self, lane: Lane, phase: Phase, detail: str, now: Instant) -> None:
        lane.phase, lane.detail = phase, detail
        self.told += 1
        self._tell(Change(lane, phase, now, detail if len(detail) <= DETAIL_MAX else detail[:DETAIL_MAX]))

    def _forget(self, lane: Lane, now: Instant) -> None:
        for turn in lane.turns:
            self._of_turn.pop(turn, None)
        lane.turns.clear()
        self._show(lane, Phase.GONE, "", now)


def _pause(event: TurnFinished, state: State) -> tuple[Phase, str]:
    """Return how a run rests that is out on its tools, and why its place does not wait where a person is asked."""
    if A_PERSON not in event.tools:
        return _TOOL, ", ".join(event.tools)
    return _TOOL, ASKS_A_PERSON if state.limits.working_set is None else f"{ASKS_A_PERSON}; {PLACE_FREE}"


def _at_rest(event: TurnFinished) -> tuple[Phase, str]:
    """Return how a run rests after an answer, and whether it was us who cut that off."""
    return (Phase.IDLE, f"{CUT_OFF} of {event.reply_cap} tokens") if is_cut(event) else _AT_REST


def _busiest(lane: Lane) -> tuple[Phase, str]:
    """Return the phase in which a run with open turns is shown."""
    return min(lane.turns.values(), key=lambda each: _RANK.index(each[0]))


def _waits_for(state: State, turn: TurnId, model: ModelName) -> bool:
    held = state.held.get(turn)
    return held is not None and held.arrival.model == model
