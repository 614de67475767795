"""What a run with several models comes to where it is shown as one."""

from core.scheduling.builders import BATCH, INTERACTIVE, World, arrived, finished, spec
from luftpause.core.model.ids import RunId
from luftpause.core.scheduling.events import RunEnded, RunPhase
from luftpause.core.scheduling.parts import SEEN_IN_ORDER, parts_of, seen_as


def counts(world: World) -> dict[tuple[str, str], int]:
    return {
        (phase.value, of.value): count
        for (phase, of), count in zip(SEEN_IN_ORDER, world.state.run_counts, strict=True)
        if count
    }


def test_a_run_is_counted_once_as_its_busiest_part() -> None:
    world = World(spec("a"), spec("b", "n", "o"))
    world.tell_all([arrived("t1", "r"), finished("t1", tools=1)])
    assert counts(world) == {("paused", "interactive"): 1}
    world.tell(arrived("t2", "r", model="n", batch=True))
    assert counts(world) == {("generating", "batch"): 1}
    world.tell_all([finished("t2"), arrived("t3", "r", model="o"), finished("t3")])
    assert counts(world) == {("paused", "interactive"): 1}
    world.tell(RunEnded(run=RunId("r")))
    assert counts(world) == {}


def test_of_equally_busy_parts_the_interactive_one_speaks() -> None:
    world = World(spec("a", "m", "n"))
    world.tell_all([arrived("t1", "r", batch=True), arrived("t2", "r", model="n")])
    parts = parts_of(world.state, RunId("r"))
    assert [part.model for part in parts] == ["m", "n"]
    assert seen_as(parts) == (RunPhase.GENERATING, INTERACTIVE)
    assert seen_as(parts[:1]) == (RunPhase.GENERATING, BATCH)
    assert seen_as(()) is None
    assert parts_of(world.state, RunId("nobody")) == ()
