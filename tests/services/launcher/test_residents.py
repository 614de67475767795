"""What a launcher knows of one model."""

import pytest

from luftpause.core.model.ids import ReplicaId
from luftpause.core.model.models import EnginePhase
from luftpause.core.model.replicas import Endpoint, ReplicaSpec
from luftpause.core.processes.reasons import Failure, FailureKind
from luftpause.services.launcher.residents import Resident, looks_out_of_memory
from services.launcher.launcher_world import engine, model

REPLICA = ReplicaSpec(replica=ReplicaId("toy-1"), endpoint=Endpoint(url="http://e"), models=())


def test_its_phase_follows_from_what_is_known() -> None:
    resident = Resident(plan=model(engine(), build="7"))
    assert (resident.phase, resident.held().build) == (EnginePhase.LOADING, "7")
    resident.replica = REPLICA
    assert (resident.phase, resident.held().replica) == (EnginePhase.UP, REPLICA)
    resident.leaving = True
    assert resident.phase is EnginePhase.STOPPING


@pytest.mark.parametrize(
    ("code", "tail", "short"),
    [
        (1, ("torch.OutOfMemoryError: CUDA out of memory.",), True),
        (1, ("ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate",), True),
        (-9, (), True),
        (1, ("no such file",), False),
        (-15, (), False),
        (None, ("zoom is not supported",), False),
    ],
)
def test_want_of_memory_is_known_by_its_words_or_by_how_it_ended(
    code: int | None, tail: tuple[str, ...], short: bool
) -> None:
    failure = Failure(kind=FailureKind.EXITED_WHILE_STARTING, code=code, tail=tail)
    assert looks_out_of_memory(failure) is short


def test_what_we_killed_ourselves_says_nothing_of_memory() -> None:
    overdue = Failure(kind=FailureKind.NOT_READY_IN_TIME, code=-9, tail=("still loading",))
    assert not looks_out_of_memory(overdue), "it ignored the friendly signal"
    assert looks_out_of_memory(Failure(kind=FailureKind.NOT_READY_IN_TIME, code=-9, tail=("bad_alloc",)))
