"""What a run's tree means for its turns."""

from core.scheduling.builders import BATCH, INTERACTIVE, World, arrived, finished
from core.scheduling.working_set.worlds import child, replica, sized, world
from luftpause.core.model.ids import CallerId, Instant, RunId, TurnId
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.events import RunEnded
from luftpause.core.scheduling.working_set.trees import BEGUN_S, ranked_at


def family(*children: str) -> World:
    """An interactive parent that waits for its children."""
    made = world("a", "b")
    made.place(arrived("p1", "parent", caller="boss"))
    made.tell(finished("p1", tools=["await"]))
    for name in children:
        made.place(child(name, "parent", caller="its own"))
    return made


def test_children_are_paid_for_by_who_pays_for_their_parent() -> None:
    made = family("c1", "c2")
    assert {made.state.turns[TurnId(name)].arrival.caller for name in ("c1", "c2")} == {CallerId("boss")}


def test_the_last_child_of_an_interactive_parent_is_as_urgent_as_the_parent() -> None:
    made = family("c1", "c2")
    assert made.state.turns[TurnId("c2")].arrival.service_class is BATCH
    made.tell(finished("c1"))
    made.tell(RunEnded(run=RunId("run-c1")))
    made.tell(finished("c2", tools=["look"]))
    made.place(sized("c3", 1000, "run-c2"))
    assert made.state.turns[TurnId("c3")].arrival.service_class is INTERACTIVE


def test_who_has_begun_goes_first_and_whom_nobody_waits_for_last() -> None:
    made = family("c1", "c2")
    made.tell(finished("c1", tools=["look"]))
    draft, now = Draft(made.state), Instant(500.0)
    waited_for, begun = made.run("run-c2"), made.run("run-c1")
    assert waited_for is not None
    assert begun is not None
    assert ranked_at(draft, child("c3", "parent"), waited_for, now) == now
    measured = begun._replace(measure=begun.measure._replace(prompt=10))
    assert ranked_at(draft, child("c4", "parent"), measured, now) == now - BEGUN_S
    orphan = waited_for._replace(parent=RunId("gone"))
    assert ranked_at(draft, child("c5", "gone"), orphan, now) == now + BEGUN_S
    assert replica(made).in_flight  # the tree is at work meanwhile
