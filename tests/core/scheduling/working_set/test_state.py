"""What policy `working-set` knows."""

from luftpause.core.model.ids import ModelName, ReplicaId, RunId
from luftpause.core.scheduling.wheel import Wheel
from luftpause.core.scheduling.working_set.state import LEASE_STEP_S, Seat, WorkingSet

PART = RunId("r"), ModelName("m")


def test_a_replica_bears_the_less_of_what_it_says_and_what_was_learned() -> None:
    assert Seat().capacity is None
    assert Seat(pool=10).capacity == 10
    assert Seat(window=7).capacity == 7
    assert Seat(pool=10, window=7).capacity == 7
    assert Seat(pool=10, window=17).capacity == 10
    assert Seat(in_flight=3, kept=4).charged == 7


def test_it_is_looked_at_when_the_first_thing_is_due_and_forgotten_runs_leave_nothing() -> None:
    known = WorkingSet(leases=Wheel(step_s=LEASE_STEP_S), silences=Wheel(step_s=LEASE_STEP_S))
    assert known.next_at() is None
    assert known.without(PART) is known
    known = known._replace(leases=known.leases.put(PART, 80), silences=known.silences.put(ReplicaId("a"), 40))
    assert known.next_at() == 40 * LEASE_STEP_S
    assert known._replace(silences=Wheel(step_s=LEASE_STEP_S)).next_at() == 80 * LEASE_STEP_S
    assert PART not in known.without(PART).leases.bucket_of
