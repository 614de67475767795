"""A trace: what an event log tells of its runs, whoever scheduled them. Plain values.

All instants are seconds since the trace began.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from luftpause.core.model.ids import CallerId, ModelName, PrincipalId, ReplicaId, RunId
from luftpause.core.model.turns import ServiceClass, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedTurn:
    """A turn that was answered.

    Attributes:
        first_at: when its answer began, None where nobody saw it.
        prompt_bytes: of the whole request, bytes.
        usage: None where the engine reported none.
        paused: it asked for tools.
        held_s: how long the scheduler held it.
    """

    arrived_at: float
    placed_at: float
    first_at: float | None
    ended_at: float
    replica: ReplicaId
    prompt_bytes: int
    usage: Usage | None
    paused: bool
    held_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRun:
    """A run, or what one does with one model or beside its other turns: turns that followed each other.

    Attributes:
        run: unique in the trace.
        begun_before: it had turns that the log does not have.
        unfinished: it was generating or paused when the log ended.
        told_end: its agent said that it was over.
    """

    run: RunId
    service_class: ServiceClass
    caller: CallerId
    principal: PrincipalId
    model: ModelName
    turns: tuple[TracedTurn, ...]
    begun_before: bool
    unfinished: bool
    told_end: bool

    @property
    def whole(self) -> bool:
        """Whether it is in the log from its first turn to its last."""
        return not self.begun_before and not self.unfinished


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """What probes saw of a replica's load. `full`: how often it ran `running_max` requests and queued others."""

    running_max: int = 0
    full: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A load.

    Attributes:
        runs: in the order in which they began.
        replicas: those that were healthy at some time, with the models that they serve, in order of their names.
        policies: under which it was recorded, in order of appearance.
        until: when its last answer ended.
        probe_period_s: of the recorded scheduler; None when it did not probe often enough to tell.
        left_out: what is in the log and not in the trace, counted by its name.
    """

    runs: tuple[TracedRun, ...]
    replicas: Mapping[ReplicaId, tuple[ModelName, ...]]
    probes: Mapping[ReplicaId, Probes]
    policies: tuple[str, ...]
    until: float
    probe_period_s: float | None
    left_out: Counter[str]

    def turns(self) -> Iterator[TracedTurn]:
        """Yield the turns of all runs."""
        for run in self.runs:
            yield from run.turns
