"""A run's turns while they are read: chains of turns that follow each other, and the turn that is open in each."""

from dataclasses import dataclass, field

from luftpause.core.model.ids import PeerId, ReplicaId, RunId
from luftpause.core.scheduling.events import TurnArrived
from luftpause.testkit.what_if.trace import TracedRun, TracedTurn

TURNS_MAX = 10_000
"""Turns of one strand; the next one begins another."""


@dataclass(slots=True)
class OpenTurn:
    """A turn between its arrival and its end.

    Attributes:
        seen_at: its last sign of life.
        lost: its scheduler ended, or forgot it, without saying how it ended.
    """

    arrival: TurnArrived
    strand: "Strand"
    arrived_at: float
    seen_at: float
    placed_at: float | None = None
    replica: ReplicaId | None = None
    held_s: float = 0.0
    first_at: float | None = None
    lost: bool = False

    @property
    def peer(self) -> PeerId:
        """Who offered it."""
        return self.arrival.peer


@dataclass(slots=True)
class Strand:
    """Turns of one run and model that followed each other."""

    first: TurnArrived
    name: RunId
    begun_before: bool
    turns: list[TracedTurn] = field(default_factory=list)
    open: OpenTurn | None = None
    told_end: bool = False
    forgotten: bool = False

    @property
    def last_at(self) -> float:
        """When its last turn ended."""
        return self.turns[-1].ended_at if self.turns else 0.0

    def takes(self, arrival: TurnArrived) -> bool:
        """Say whether the turn can be its next one."""
        return self.open is None and self.first.model == arrival.model and len(self.turns) < TURNS_MAX

    def traced(self, began_at: float) -> TracedRun:
        """Return what was read, with instants counted from the trace's beginning. There are turns."""
        over = self.told_end or self.forgotten
        return TracedRun(
            run=self.name,
            service_class=self.first.service_class,
            caller=self.first.caller,
            principal=self.first.principal,
            model=self.first.model,
            turns=tuple(_moved(turn, began_at) for turn in self.turns),
            begun_before=self.begun_before,
            unfinished=self.open is not None or (self.turns[-1].paused and not over),
            told_end=self.told_end,
        )


def _moved(turn: TracedTurn, began_at: float) -> TracedTurn:
    return TracedTurn(
        arrived_at=turn.arrived_at - began_at,
        placed_at=turn.placed_at - began_at,
        first_at=None if turn.first_at is None else turn.first_at - began_at,
        ended_at=turn.ended_at - began_at,
        replica=turn.replica,
        prompt_bytes=turn.prompt_bytes,
        usage=turn.usage,
        paused=turn.paused,
        held_s=turn.held_s,
    )
