"""Who is told to take a turn back."""

from luftpause.core.model.ids import PeerId, TurnId
from luftpause.services.scheduler.recalls import Recalls


def test_each_dataplane_is_told_of_its_own_by_what_it_named_last_and_not_once_it_is_gone() -> None:
    recalls = Recalls()
    old, new, other = list[TurnId](), list[TurnId](), list[TurnId]()
    recalls.attend(PeerId("p"), old.append)
    recalls.attend(PeerId("p"), new.append)
    recalls.attend(PeerId("q"), other.append)
    recalls.order(PeerId("p"), TurnId("p.1"))
    recalls.order(PeerId("nobody"), TurnId("n.1"))
    recalls.leave(PeerId("p"))
    recalls.leave(PeerId("p"))
    recalls.order(PeerId("p"), TurnId("p.2"))
    recalls.order(PeerId("q"), TurnId("q.1"))
    assert (old, new, other) == ([], ["p.1"], ["q.1"])
