"""What an outage or a refusal leaves of a replica, by the rules."""

from luftpause.testkit.sim.narrow import Narrow, halved


def test_what_a_replica_may_have_grows_by_answers_or_by_widthfuls() -> None:
    assert [Narrow(4, answers=answers).width for answers in range(4)] == [4, 5, 6, 7]
    assert [Narrow(2, refused_at=9, answers=answers).width for answers in range(10)] == [2, 2, 3, 3, 3, 4, 4, 4, 4, 5]


def test_a_refusal_leaves_half_at_least_one_and_never_more_than_before() -> None:
    assert halved(None, 7) == Narrow(3, refused_at=7)
    assert halved(None, 1) == Narrow(1, refused_at=1)
    assert halved(Narrow(4), 20) == Narrow(4, refused_at=20)


def test_it_is_over_when_it_has_doubled_beside_free_places_or_outgrown_the_refusal() -> None:
    assert Narrow(2, answers=1).answered(2) is None
    assert Narrow(2, answers=1).answered(3) == Narrow(2, answers=2), "no place is free"
    assert Narrow(2).answered(1) == Narrow(2, answers=1), "not doubled"
    assert Narrow(1, refused_at=2).answered(1) == Narrow(1, refused_at=2, answers=1)
    assert Narrow(1, refused_at=2, answers=2).answered(1) is None
