"""The replicas of a log."""

from core.scheduling.builders import probed
from luftpause.core.model.ids import ModelName, ReplicaId
from luftpause.testkit.what_if.pool import SeenPool
from luftpause.testkit.what_if.trace import Probes

A = ReplicaId("a")


def test_the_period_is_the_usual_one() -> None:
    pool = SeenPool()
    assert pool.period_s() is None
    for at in (0.0, 0.25, 2.25, 4.25, 6.25):
        pool.probed(probed("a", 0, 0), at)
    assert pool.period_s() == 2.0


def test_it_counts_how_often_the_most_ran_while_others_queued() -> None:
    pool = SeenPool()
    for running, waiting in ((2, 1), (4, 0), (4, 2), (3, 9), (4, 1)):
        pool.probed(probed("a", running, waiting), 0.0)
    assert pool.probes() == {A: Probes(running_max=4, full=2)}


def test_a_replica_is_there_once_it_was_declared_and_healthy() -> None:
    pool = SeenPool()
    pool.found_healthy(A)
    assert pool.healthy() == {}
    pool.declared(A, (ModelName("m"),))
    pool.declared(ReplicaId("b"), (ModelName("m"),))
    pool.probed(probed("b", healthy=False), 0.0)
    assert pool.healthy() == {A: ("m",)}
