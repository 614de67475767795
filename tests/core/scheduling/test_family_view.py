"""Parents and their runs, as people see them."""

from core.scheduling.builders import BATCH, INTERACTIVE, World, arrived, finished, spec
from luftpause.core.model.ids import RunId
from luftpause.core.scheduling.events import RunEnded, RunPhase
from luftpause.core.scheduling.family_view import CHILDREN_SHOWN, FAMILIES_SHOWN, FamilyView, MemberView, view_families


def test_a_parent_is_shown_with_who_works_for_it() -> None:
    world = World(spec("a", "m", "n"))
    assert view_families(world.state) == ()
    world.tell_all([arrived("t1", "boss"), finished("t1", tools=["spawn"])])
    world.tell_all([arrived("t2", "done", parent="boss"), finished("t2")])
    world.tell(arrived("t3", "busy", parent="boss", batch=True))
    assert view_families(world.state) == (
        FamilyView(
            parent=MemberView(run=RunId("boss"), phase=RunPhase.PAUSED, service_class=INTERACTIVE),
            at_work=1,
            children=(
                MemberView(run=RunId("busy"), phase=RunPhase.GENERATING, service_class=BATCH),
                MemberView(run=RunId("done"), phase=RunPhase.IDLE, service_class=INTERACTIVE),
            ),
            left_out=0,
        ),
    )
    world.tell(RunEnded(run=RunId("boss")))
    assert view_families(world.state)[0].parent == MemberView(run=RunId("boss"), phase=None, service_class=None)


def test_a_child_that_asks_two_models_is_one_child() -> None:
    world = World(spec("a", "m", "n"))
    world.tell_all([arrived("t1", "kid", parent="boss"), arrived("t2", "kid", model="n", parent="boss")])
    (family,) = view_families(world.state)
    assert (family.at_work, len(family.children)) == (1, 1)


def test_the_busiest_are_shown_and_the_others_counted() -> None:
    world = World(spec("a"))
    for number in range(FAMILIES_SHOWN + 2):
        world.tell_all([arrived(f"t{number}", f"kid{number}", parent=f"boss{number}"), finished(f"t{number}")])
    for number in range(CHILDREN_SHOWN + 3):
        world.tell_all([arrived(f"u{number}", f"many{number}", parent="chief"), finished(f"u{number}")])
    world.tell(arrived("v", "many7", parent="chief"))
    families = view_families(world.state)
    assert len(families) == FAMILIES_SHOWN
    chief = families[0]
    assert (chief.parent.run, chief.at_work, chief.children[0].run) == ("chief", 1, "many7")
    assert (len(chief.children), chief.left_out) == (CHILDREN_SHOWN, 3)
