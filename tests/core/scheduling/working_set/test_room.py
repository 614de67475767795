"""May this replica take this turn now?"""

from core.scheduling.builders import BATCH, INTERACTIVE
from core.scheduling.working_set.worlds import begun, replica, sized, world
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


def test_what_is_closed_or_ill_takes_nothing() -> None:
    known = replica(world())
    assert is_open(known)
    assert not is_open(known._replace(healthy=False))
    assert not goes_on(known._replace(declared=False), INTERACTIVE, LIMITS)
