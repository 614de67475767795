"""Which replica is closed for which held turn."""

from core.scheduling.builders import failed, probed
from core.scheduling.working_set.worlds import begun, seat, sized, world
from luftpause.core.model.ids import TurnId
from luftpause.core.scheduling.events import TurnAbandoned
from luftpause.core.scheduling.working_set.sending import STARVED_S


def test_whoever_leaves_opens_its_replica_for_the_next_in_line() -> None:
    busy = world()
    busy.place(sized("t1", 9000))
    busy.hold(sized("t2", 5000))
    busy.hold(sized("t3", 5000))
    assert seat(busy).claimed_by == "t2"
    busy.tell(TurnAbandoned(turn=TurnId("t2")))
    assert seat(busy).claimed_by == "t3"
    assert busy.state.held[TurnId("t3")].claims == "a"


def test_a_replica_that_falls_ill_is_closed_for_nobody() -> None:
    busy = world()
    busy.place(sized("t1", 9000))
    busy.hold(sized("t2", 5000))
    busy.tell(probed("a", healthy=False))
    assert seat(busy).claimed_by is None
    assert busy.state.held[TurnId("t2")].claims is None


def test_who_had_an_ill_replica_closed_closes_another_one() -> None:
    busy = world("a", "b")
    busy.place(sized("t1", 9000))
    busy.place(sized("t2", 8500))
    busy.tell_all([begun("t1"), begun("t2")])
    busy.hold(sized("t3", 9000))
    assert seat(busy, "b").claimed_by == "t3"
    busy.tell(probed("b", healthy=False))
    assert seat(busy, "a").claimed_by == "t3"


def test_who_is_displaced_by_batch_that_starved_closes_what_was_closed_for_other_batch() -> None:
    busy = world("a", "b")
    busy.place(sized("t1", 8000, batch=False))
    busy.place(sized("t2", 8500, batch=False))
    assert busy.place(sized("x", 10, batch=False)) == "a"
    busy.tell_all([begun("t1"), begun("t2"), begun("x")])
    busy.hold(sized("starved", 9000))
    busy.hold(sized("other", 9000))
    busy.hold(sized("i", 9000, batch=False))
    assert (seat(busy, "a").claimed_by, seat(busy, "b").claimed_by) == ("i", "other")
    busy.later(STARVED_S)
    busy.tell(failed("x"))
    assert (seat(busy, "a").claimed_by, seat(busy, "b").claimed_by) == ("starved", "i")
