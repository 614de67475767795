"""Which held turn goes out next."""

from core.scheduling.builders import World, arrived, crowded, finished, placed, probed, spec
from luftpause.core.model.ids import PeerId, TurnId
from luftpause.core.scheduling.events import PeerLost, ReplicaAdded, TurnAbandoned
from luftpause.core.scheduling.standings import RESTING_SPARE


def full_world(*flights: tuple[str, str]) -> World:
    """One replica that runs these (turn, caller) and takes no more."""
    world = World(spec("a"))
    for turn, caller in flights:
        world.place(arrived(turn, caller=caller))
    world.tell(probed("a", running=len(flights), waiting=5))
    return world


def drained(world: World, turns: list[str]) -> list[str]:
    """End turns one by one; return who got each place."""
    return [turn for ended in turns for turn, _ in placed(world.tell(finished(ended)))]


def test_interactive_turns_go_before_batch_turns_that_came_first() -> None:
    world = full_world(("x", "c"), ("y", "c"))
    world.hold(arrived("b", batch=True))
    world.hold(arrived("i"))
    assert drained(world, ["x", "y"]) == ["i", "b"]


def test_among_equals_the_caller_with_fewest_turns_in_flight_goes_first() -> None:
    world = full_world(("x", "greedy"), ("y", "greedy"), ("z", "modest"))
    world.hold(arrived("g", caller="greedy"))
    world.hold(arrived("m", caller="modest"))
    assert drained(world, ["x"]) == ["g"], "one each now, so the earlier arrival"
    assert drained(world, ["y"]) == ["m"]


def test_one_callers_flood_does_not_starve_another() -> None:
    world = full_world(("x1", "flood"), ("x2", "flood"), ("x3", "flood"))
    for number in range(50):
        world.hold(arrived(f"f{number}", caller="flood"))
    world.hold(arrived("q1", caller="quiet"))
    world.hold(arrived("q2", caller="quiet"))
    assert drained(world, ["x1", "x2", "x3", "q1"]) == ["q1", "f0", "q2", "f1"]


def test_where_there_is_room_for_one_turn_only_callers_take_turns() -> None:
    world = full_world(("x", "flood"))
    for number in range(4):
        world.hold(arrived(f"f{number}", caller="flood"))
    for number in range(3):
        world.hold(arrived(f"q{number}", caller="quiet"))
    assert drained(world, ["x", "f0", "q0", "f1", "q1", "f2", "q2"]) == ["f0", "q0", "f1", "q1", "f2", "q2", "f3"]


def test_where_there_is_room_for_one_turn_only_principals_take_turns_whatever_callers_they_name() -> None:
    world = full_world(("x", "c"))
    for number in range(3):
        world.hold(arrived(f"a{number}", principal="alice", caller=f"alias-{number}"))
    world.hold(arrived("b0", principal="bob"))
    world.hold(arrived("b1", principal="bob"))
    assert drained(world, ["x", "a0", "b0", "a1", "b1"]) == ["a0", "b0", "a1", "b1", "a2"]


def test_a_caller_that_has_nothing_open_any_more_still_has_had_its_turn() -> None:
    """One turn at a time against a flood: each gets every other place."""
    world = full_world(("x", "flood"))
    for number in range(4):
        world.hold(arrived(f"f{number}", caller="flood"))
    world.hold(arrived("q0", caller="single"))
    assert drained(world, ["x", "f0", "q0"]) == ["f0", "q0", "f1"]
    world.hold(arrived("q1", caller="single"))
    assert drained(world, ["f1", "q1"]) == ["q1", "f2"]


def test_ever_new_callers_do_not_starve_one_that_was_served_before() -> None:
    world = full_world(("x", "steady"))
    world.hold(arrived("s0", caller="steady"))
    world.hold(arrived("s1", caller="steady"))
    in_flight = drained(world, ["x"])
    order = []
    for number in range(4):
        world.hold(arrived(f"n{number}", caller=f"new-{number}"))
        in_flight = drained(world, in_flight)
        order += in_flight
    assert order[0] == "s1", "served before any of the new ones came"


def test_who_was_served_when_is_forgotten_when_nobody_waits_and_bounded_while_somebody_does() -> None:
    world = full_world(("x", "c"))
    world.hold(arrived("h"))
    for number in range(RESTING_SPARE + 50):
        caller = f"passer-by-{number}"
        world.hold(arrived(f"t{number}", caller=caller))
        world.tell(TurnAbandoned(turn=TurnId(f"t{number}")))
        assert len(world.state.standings.resting) <= RESTING_SPARE + 4
    assert drained(world, ["x"]) == ["h"]
    assert not world.state.standings.resting


def test_hundreds_of_callers_and_principals_that_wait_take_turns_in_order_of_their_coming() -> None:
    world = full_world(("x", "c"))
    for number in range(300):
        world.hold(arrived(f"t{number}", principal=f"p{number % 7}", caller=f"c{number}"))
    order, ended = [], ["x"]
    while ended:
        ended = drained(world, ended)
        order += ended
    assert order == [f"t{number}" for number in range(300)]


def test_principals_share_first_and_their_callers_after() -> None:
    world = World(spec("a"))
    for number in range(4):
        world.place(arrived(f"x{number}", principal="alice", caller=f"c{number}"))
    world.tell(probed("a", running=4, waiting=1))
    world.hold(arrived("a1", principal="alice", caller="fresh"))
    world.hold(arrived("b1", principal="bob", caller="c"))
    world.hold(arrived("b2", principal="bob", caller="c"))
    assert drained(world, ["x0", "x1", "x2"]) == ["b1", "b2", "a1"]


def test_turns_of_one_caller_go_out_by_arrival() -> None:
    world = full_world(("x", "c"), ("y", "c"), ("z", "c"))
    for turn in ("t2", "t10", "t1"):
        world.hold(arrived(turn))
    assert drained(world, ["x", "y", "z"]) == ["t2", "t10", "t1"]


def test_a_turn_offered_again_after_a_reconnect_keeps_its_place() -> None:
    """Case 17."""
    world = full_world(("x", "c"), ("y", "c"))
    world.later(60)
    world.hold(arrived("young"))
    world.later(1)
    world.hold(arrived("old", age_s=30))
    assert drained(world, ["x", "y"]) == ["old", "young"]


def test_a_turn_that_fits_is_not_kept_behind_one_that_does_not() -> None:
    """A batch turn kept out of `a` does not block an interactive one, nor one for another model."""
    world = World(spec("a"), spec("b", "n"))
    world.tell_all([arrived("i1", "r"), arrived("y"), finished("i1", tools=1), probed("a", running=2, waiting=1)])
    world.hold(arrived("b1", batch=True))
    assert world.place(arrived("n1", model="n")) == "b"
    assert world.place(arrived("i2")) == "a"


def test_a_new_replica_takes_held_turns_as_soon_as_it_is_healthy() -> None:
    world = full_world(("x", "c"))
    world.hold(arrived("t1", batch=True))
    world.hold(arrived("t2"))
    assert placed(world.tell(ReplicaAdded(spec=spec("b")))) == []
    assert placed(world.tell(probed("b"))) == [("t2", "b"), ("t1", "b")]


def test_a_new_replica_that_others_fill_takes_one() -> None:
    world = full_world(("x", "c"))
    for number in range(5):
        world.hold(arrived(f"t{number}"))
    world.tell(ReplicaAdded(spec=spec("b")))
    assert placed(world.tell(probed("b", running=2, waiting=1))) == [("t0", "b")]


def test_placing_one_turn_of_a_run_ties_its_other_held_turns_to_the_same_replica() -> None:
    world = full_world(("x", "c"))
    world.hold(arrived("t1", "r"))
    world.hold(arrived("t2", "r"))
    world.tell(ReplicaAdded(spec=spec("b")))
    assert placed(world.tell(probed("b", running=1, waiting=1))) == [("t1", "b")]
    assert placed(world.tell(finished("x"))) == [], "t2 waits for b, where t1 runs"
    assert placed(world.tell(probed("b"))) == [("t2", "b")]


def test_a_turn_that_follows_its_run_to_another_pool_while_turns_go_out_is_placed_once() -> None:
    world = World(spec("a"))
    world.tell_all(crowded("a"))
    world.hold(arrived("t1", "r", principal="A"))
    world.hold(arrived("t2", "r", principal="B"))
    assert placed(world.tell(probed("a"))) == [("t1", "a"), ("t2", "a")]


def test_room_kept_for_paused_interactive_runs_goes_to_an_interactive_turn_and_stops_the_batch_behind_it() -> None:
    world = World(spec("a"))
    world.tell_all([arrived("p", "paused"), arrived("x"), finished("p", tools=1), probed("a", running=1, waiting=1)])
    for number in range(3):
        world.hold(arrived(f"b{number}", batch=True, caller=f"c{number}"))
    world.hold(arrived("i"))
    assert placed(world.tell(probed("a", running=4, waiting=1))) == [("i", "a"), ("b0", "a")]
    assert placed(world.tell(finished("b0"))) == [("b1", "a")]
    assert placed(world.tell(probed("a", running=9, waiting=0))) == [("b2", "a")]


def test_several_replicas_that_gain_room_at_once_are_filled_evenly() -> None:
    world = World(spec("a"), spec("b"))
    for number in range(4):
        world.place(arrived(f"lost{number}", peer="lost"))
    world.tell_all([probed("a", running=2, waiting=1), probed("b", running=2, waiting=1)])
    for number in range(5):
        world.hold(arrived(f"t{number}", peer="alive"))
    assert placed(world.tell(PeerLost(peer=PeerId("lost")))) == [("t0", "a"), ("t1", "b"), ("t2", "a"), ("t3", "b")]
