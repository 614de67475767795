"""Why a held turn waits."""

from core.scheduling.builders import arrived, failed, probed
from core.scheduling.working_set.worlds import answered, begun, sized, world
from luftpause.core.model.ids import ModelName, ReplicaId
from luftpause.core.scheduling.reasons import (
    AwaitingFirstTokens,
    NoHealthyReplica,
    ReplicaClosed,
    RoomKeptFor,
    WaitingForTokens,
    WindowFull,
    explain,
)
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits

A = ReplicaId("a")


def test_tokens_that_fit_nowhere_are_told_with_what_is_free() -> None:
    busy = world()
    busy.place(sized("t1", 6000))
    reason = busy.hold(sized("t2", 5000))
    assert reason == WaitingForTokens(replica=A, need=5200, free=3800)
    assert explain(reason) == "waiting for room to begin: it needs 5200 tokens, and a has 3800 free"


def test_whom_a_replica_is_closed_for_is_told() -> None:
    busy = world()
    busy.place(sized("t1", 6000))
    busy.hold(sized("t2", 5000, caller="x"))
    reason = busy.hold(sized("t3", 10))
    assert reason == RoomKeptFor(replica=A, caller=sized("t", 1, caller="x").caller)
    assert "caller x" in explain(reason)


def test_first_tokens_that_are_due_are_told() -> None:
    busy = world(limits=WorkingSetLimits(first_tokens=1))
    busy.place(sized("t1", 10))
    reason = busy.hold(sized("t2", 10))
    assert reason == AwaitingFirstTokens(replica=A, turns=1)
    assert explain(reason) == "1 turn on a have no first token yet"


def test_an_engine_that_is_away_or_closed_or_starts_slowly_is_told() -> None:
    busy = world()
    busy.place(sized("t1", 10))
    busy.tell(failed("t1", retry_after_s=5.0))
    assert busy.hold(sized("t2", 10)) == ReplicaClosed(replica=A)
    busy.tell(probed("a", healthy=False, cause="it burns"))
    assert busy.hold(arrived("t3")) == NoHealthyReplica(model=ModelName("m"), cause="a: it burns")


def test_a_full_window_is_told() -> None:
    busy = world()
    busy.tell_all([probed("a", healthy=False), probed("a")])
    for number in range(4):
        busy.place(sized(f"t{number}", 10))
        busy.tell(begun(f"t{number}"))
    assert busy.hold(sized("late", 10)) == WindowFull(replica=A, turns=4, refused=False)
    busy.tell(answered("t0", 10))
