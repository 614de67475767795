"""May this replica take this turn now?"""

from dataclasses import replace

import pytest

from core.scheduling.builders import BATCH, INTERACTIVE, World, spec
from core.scheduling.working_set.worlds import begun, replica, sized, told, world
from luftpause.core.model.replicas import EngineKind
from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.room import (
    first_tokens_due,
    free_tokens,
    goes_on,
    has_tokens,
    is_open,
    may_begin,
)

LIMITS = WorkingSetLimits(fill=0.5, fill_interactive=0.75, first_tokens=2)


def test_batch_leaves_more_of_the_memory_free_than_interactive_runs_do() -> None:
    busy = world(limits=LIMITS)
    busy.place(sized("t1", 1800))
    assert free_tokens(replica(busy), BATCH, LIMITS) == 3000
    assert free_tokens(replica(busy), INTERACTIVE, LIMITS) == 5500
    assert has_tokens(replica(busy), BATCH, 3000, LIMITS)
    assert not has_tokens(replica(busy), BATCH, 3001, LIMITS)
    assert has_tokens(replica(busy), BATCH, 3001, WorkingSetLimits(gate=False))


def test_where_nothing_of_ours_runs_everything_fits() -> None:
    assert has_tokens(replica(world(limits=LIMITS)), BATCH, 10**6, LIMITS)


def test_a_memory_that_nobody_knows_is_no_limit() -> None:
    busy = world(kv=None, limits=LIMITS)
    busy.place(sized("t1", 1800))
    assert free_tokens(replica(busy), BATCH, LIMITS) is None
    assert has_tokens(replica(busy), BATCH, 10**6, LIMITS)


def test_few_turns_wait_for_their_first_token_and_interactive_runs_that_go_on_do_not_mind() -> None:
    busy = world(limits=LIMITS)
    busy.place(sized("t1", 100))
    assert not first_tokens_due(replica(busy), LIMITS)
    busy.place(sized("t2", 100))
    assert first_tokens_due(replica(busy), LIMITS)
    assert not may_begin(replica(busy), LIMITS)
    assert not goes_on(replica(busy), BATCH, LIMITS)
    assert goes_on(replica(busy), INTERACTIVE, LIMITS)
    busy.tell(begun("t1"))
    assert may_begin(replica(busy), LIMITS)


@pytest.mark.parametrize("engine", [EngineKind.AUTO, EngineKind.OPENAI, EngineKind.ROUTER])
def test_what_never_told_of_its_load_may_be_a_fleet_and_reads_any_number_of_prompts(engine: EngineKind) -> None:
    hosted = World(spec("a", engine=engine), limits=Limits(working_set=LIMITS))
    hosted.tell(replace(told("a", None), load=None))
    for number in range(8):
        hosted.place(sized(f"t{number}", 100))
    hosted.tell(told("a", None))
    assert first_tokens_due(replica(hosted), LIMITS)
    hosted.hold(sized("late", 100))


def test_an_engine_that_reads_one_prompt_after_the_other_is_known_by_its_kind() -> None:
    known = World(spec("a", engine=EngineKind.OLLAMA), limits=Limits(working_set=LIMITS))
    known.tell(replace(told("a", None), load=None))
    known.place(sized("t1", 100))
    known.place(sized("t2", 100))
    known.hold(sized("t3", 100))


def test_what_is_closed_or_ill_takes_nothing() -> None:
    known = replica(world())
    assert is_open(known)
    assert not is_open(known._replace(healthy=False))
    assert not goes_on(known._replace(declared=False), INTERACTIVE, LIMITS)
