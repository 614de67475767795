"""A run's turns while they are read."""

from core.scheduling.builders import arrived
from luftpause.core.model.ids import ReplicaId, RunId
from luftpause.testkit.what_if import strands as module
from luftpause.testkit.what_if.strands import OpenTurn, Strand
from luftpause.testkit.what_if.trace import TracedTurn

TURN = TracedTurn(
    arrived_at=10.0,
    placed_at=11.0,
    first_at=None,
    ended_at=13.0,
    replica=ReplicaId("a"),
    prompt_bytes=4,
    usage=None,
    paused=True,
    held_s=1.0,
)


def test_a_strand_takes_what_can_follow() -> None:
    strand = Strand(first=arrived("1", "r"), name=RunId("r"), begun_before=False)
    assert strand.takes(arrived("2", "r"))
    assert not strand.takes(arrived("2", "r", model="n"))
    strand.open = OpenTurn(strand.first, strand, 0.0, 0.0)
    assert not strand.takes(arrived("2", "r"))
    strand.open = None
    strand.turns = [TURN] * module.TURNS_MAX
    assert not strand.takes(arrived("2", "r"))


def test_instants_are_counted_from_the_beginning_of_the_trace() -> None:
    strand = Strand(first=arrived("1", "r"), name=RunId("r"), begun_before=True, turns=[TURN])
    run = strand.traced(10.0)
    turn = run.turns[0]
    assert (turn.arrived_at, turn.placed_at, turn.first_at, turn.ended_at) == (0.0, 1.0, None, 3.0)
    assert (run.unfinished, run.begun_before) == (True, True)
    strand.forgotten = True
    assert not strand.traced(10.0).unfinished
