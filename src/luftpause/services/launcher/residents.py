"""What a launcher knows of one model: the settings that its engines were started with, and what has become of them."""

from dataclasses import dataclass, field
from typing import Final

from luftpause.core.model.ids import KvFile, ReplicaId
from luftpause.core.model.models import EnginePhase, HeldEngine
from luftpause.core.model.parked_kv import SavedKv
from luftpause.core.model.replicas import ReplicaSpec
from luftpause.core.processes.reasons import Failure, FailureKind
from luftpause.services.launcher.instance import Instance
from luftpause.services.launcher.planning import ModelPlan


@dataclass(slots=True, kw_only=True)
class Resident:
    """One model from the order to load it until nothing of it is left. Changed by the launcher alone.

    Attributes:
        plan: the settings that it was started with.
        alive: its engines that run or are to run again by themselves.
        replica: the one that was told up first; the scheduler keeps it with the model. None while it is loading.
        further: replicas of its other engines, as they were declared.
        memory: as measured, bytes; 0 while nobody has.
        leaving: whether it was ordered to go.
        failure: the last one of an engine that is not started again.
        free_before: what was free on its device before it was stopped, bytes; None where nobody can tell.
        told: how far its load was told to be, 0 to 1.
        slots: of its engine whose KV can be saved.
        kv: what was saved before its stop.
        kv_asked: what was to be saved.
        prefill_s: what a token of a prompt cost its engine, seconds; 0 where it did not say.
    """

    plan: ModelPlan
    alive: dict[ReplicaId, Instance] = field(default_factory=dict)
    replica: ReplicaSpec | None = None
    further: set[ReplicaId] = field(default_factory=set)
    memory: int = 0
    leaving: bool = False
    failure: Failure | None = None
    free_before: int | None = None
    told: float = 0.0
    slots: int = 0
    kv: tuple[SavedKv, ...] = ()
    kv_asked: tuple[KvFile, ...] = ()
    prefill_s: float = 0.0

    @property
    def phase(self) -> EnginePhase:
        """What it is doing."""
        if self.leaving:
            return EnginePhase.STOPPING
        return EnginePhase.LOADING if self.replica is None else EnginePhase.UP

    def held(self) -> HeldEngine:
        """Return it as the inventory names it."""
        return HeldEngine(
            model=self.plan.spec.model,
            phase=self.phase,
            replica=self.replica,
            memory=self.memory,
            build=self.plan.spec.build,
            slots=self.slots,
        )


_SIGKILL: Final = 9
"""The kernel ends so what takes more than there is; so do we, what is overdue and did not end when it was asked to."""
_SHORT_OF_MEMORY: Final = (
    "out of memory",
    "outofmemory",
    "failed to allocate",
    "unable to allocate",
    "cannot allocate memory",
    "bad_alloc",
    "memoryerror",
    "cudamalloc failed",
    "insufficient memory",
    "requires more system memory",
)


def looks_out_of_memory(failure: Failure) -> bool:
    """Whether an engine's last words, or how it ended, say that memory was short."""
    was_killed = failure.code == -_SIGKILL and failure.kind is not FailureKind.NOT_READY_IN_TIME
    return was_killed or says_out_of_memory(" ".join(failure.tail))


def says_out_of_memory(words: str) -> bool:
    """Whether an engine says that memory was short."""
    said = words.lower()
    return any(short in said for short in _SHORT_OF_MEMORY)
