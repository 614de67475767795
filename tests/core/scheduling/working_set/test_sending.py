"""Which turns go where now."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.scheduling.builders import failed, placed, reasons_placed
from core.scheduling.working_set.worlds import REPLY, answered, begun, seat, sized, told, world
from luftpause.core.model.ids import ReplicaId, TurnId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.reasons import PlacedBecause, RoomKeptFor, WaitingForTokens
from luftpause.core.scheduling.state import Replica
from luftpause.core.scheduling.working_set.keeping import speed_of
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.room import has_tokens, is_outdone, load_of, may_begin
from luftpause.core.scheduling.working_set.sending import OWED_S, WAIT_STEP_S


def test_a_run_begins_where_most_is_free_and_waits_where_it_fits_nowhere() -> None:
    busy = world("a", "b")
    assert busy.place(sized("t1", 4000)) == "a"
    assert busy.place(sized("t2", 2000)) == "b"
    assert busy.place(sized("t3", 2000)) == "b"
    assert busy.hold(sized("t4", 6000)) == WaitingForTokens(replica=ReplicaId("a"), need=6200, free=5800)


def test_without_placement_a_run_begins_where_fewest_turns_are_in_flight() -> None:
    busy = world("a", "b", limits=WorkingSetLimits(fill=1.0, placement=False))
    assert busy.place(sized("t1", 4000)) == "a"
    assert busy.place(sized("t2", 1000)) == "b"
    assert busy.place(sized("t3", 1000)) == "a", "first declared of equals, whatever else is charged there"


@pytest.mark.parametrize("seed", range(20))
def test_what_is_said_of_a_place_is_true_of_it_whatever_memory_the_others_have(seed: int) -> None:
    dice = Random(seed)
    pools = [dice.randint(2_000, 40_000) for _ in range(dice.randint(2, 4))]
    names = "abcd"[: len(pools)]
    busy = world(*names)
    busy.tell_all([told(name, kv) for name, kv in zip(names, pools, strict=True)])
    for number in range(30):
        tokens = dice.randint(100, 9_000)
        if busy.state.turns and dice.random() < 0.5:
            waited = set(busy.state.held)
            sent = busy.tell(failed(dice.choice(sorted(busy.state.turns))))
            assert {turn for turn, _ in placed(sent)} <= waited
            assert set(reasons_placed(sent)) <= {PlacedBecause.ROOM_CAME, PlacedBecause.TOO_LARGE}
        before = busy.state.replicas
        arriving = busy.tell(sized(f"t{number}", tokens))
        for (_, name), why in zip(placed(arriving), reasons_placed(arriving), strict=True):
            assert why in (PlacedBecause.READ_SOONEST, PlacedBecause.TOO_LARGE)
            if why is PlacedBecause.READ_SOONEST:
                fits = [each for each in before.values() if _takes(each, tokens + REPLY, list(before.values()))]
                assert _rank(before[ReplicaId(name)]) == min(_rank(each) for each in fits)
        if placed(arriving) and dice.random() < 0.5:
            busy.tell(begun(f"t{number}"))


def _takes(replica: Replica, need: int, among: list[Replica]) -> bool:
    limits = WorkingSetLimits(fill=1.0)
    if replica.seat.claimed_by is not None or not may_begin(replica, limits) or is_outdone(need, replica, among):
        return False
    return has_tokens(replica, ServiceClass.BATCH, need, limits)


def _rank(replica: Replica) -> tuple[int, int]:
    """Return for how long prompts keep the replica, in steps that count as alike, and how many tokens are taken."""
    return int(sum(each.tokens for each in replica.seat.awaiting) / speed_of(replica) / WAIT_STEP_S), load_of(replica)


def test_the_first_in_line_closes_one_replica_and_the_other_takes_who_fits() -> None:
    busy = world("a", "b")
    busy.place(sized("t1", 5000))
    busy.place(sized("t2", 6000))
    busy.hold(sized("big", 8000))
    assert seat(busy, "a").claimed_by == "big"
    assert busy.place(sized("small", 1000)) == "b"
    busy.tell_all([begun("t1"), begun("t2"), begun("small")])
    assert isinstance(busy.hold(sized("t3", 4000)), WaitingForTokens)
    assert busy.hold(sized("t4", 10)) == RoomKeptFor(replica=ReplicaId("a"), caller=sized("x", 1).caller)


@given(
    st.integers(1, 4), st.lists(st.integers(500, 9500), min_size=5, max_size=30), st.integers(500, 9500), st.randoms()
)
def test_who_is_first_in_line_waits_for_nobody_behind_it_unless_for_a_replica_of_its_own(
    replicas: int, flood: list[int], tokens: int, dice: Random
) -> None:
    busy = world(*"abcd"[:replicas])
    for number, each in enumerate(flood):
        busy.tell(sized(f"f{number}", each, caller="flood"))
    busy.tell(sized("single", tokens, caller="single"))
    while TurnId("single") in busy.state.held:
        gone_out = placed(busy.tell(failed(dice.choice(sorted(busy.state.turns)))))
        if TurnId("single") in busy.state.held:
            claims = busy.state.held[TurnId("single")].claims
            assert claims is not None or not gone_out, f"{gone_out} went before it"
            assert claims not in [replica for _, replica in gone_out], (
                f"{gone_out} went where {claims} is closed for it"
            )


def test_interactive_runs_begin_past_what_is_closed_for_batch() -> None:
    busy = world("a")
    busy.place(sized("t1", 5000))
    busy.hold(sized("big", 8000))
    assert busy.place(sized("i", 1000, batch=False)) == "a"
    busy.hold(sized("i-big", 8000, batch=False))
    assert seat(busy).claimed_by == "i-big"
    assert placed(busy.tell_all([failed("t1"), failed("i")])) == [("i-big", "a")]
    assert seat(busy).claimed_by == "big"


def test_what_goes_on_goes_before_what_begins() -> None:
    busy = world("a")
    for turn in ("t1", "t2", "t3"):
        busy.place(sized(turn, 1000, f"r{turn}"))
    busy.tell(begun("t1"))
    busy.tell(answered("t1", 1000, tool="look"))
    busy.place(sized("t4", 1000))
    busy.hold(sized("new", 1000))
    busy.hold(sized("t5", 1100, "rt1"))
    assert placed(busy.tell(begun("t2"))) == [("t5", "a")]
    assert placed(busy.tell(begun("t3"))) == [("new", "a")]


def test_whoever_waits_for_two_minutes_is_owed_the_places_of_those_who_come_back() -> None:
    for waited_s, first in ((OWED_S - 1, "t2"), (OWED_S, "big")):
        busy = world()
        busy.place(sized("t1", 4000, "r"))
        busy.place(sized("other", 4000))
        busy.tell_all([begun("t1"), begun("other")])
        busy.hold(sized("big", 5000))
        busy.later(waited_s)
        busy.tell(answered("t1", 4000, tool="look"))
        assert placed(busy.tell(sized("t2", 4200, "r"))) == [(first, "a")]


def test_an_interactive_run_gives_no_place_up_to_a_batch_run() -> None:
    busy = world()
    busy.place(sized("t1", 4000, "r", batch=False))
    busy.place(sized("other", 4000))
    busy.tell_all([begun("t1"), begun("other")])
    busy.hold(sized("big", 5000))
    busy.later(OWED_S)
    busy.tell(answered("t1", 4000, tool="look"))
    assert placed(busy.tell(sized("t2", 4200, "r", batch=False))) == [("t2", "a")]


def test_what_seems_too_large_for_every_engine_goes_at_once_to_the_largest_and_takes_no_room_from_others() -> None:
    busy = world("a", "b")
    busy.tell(told("b", 20_000))
    for turn in ("x", "y"):
        busy.place(sized(turn, 5000))
        busy.tell(begun(turn))
    actions = busy.tell(sized("vast", 50_000))
    assert placed(actions) == [("vast", "b")]
    assert reasons_placed(actions) == [PlacedBecause.TOO_LARGE]
    assert seat(busy, "b").in_flight < 10_000


def test_what_may_fit_by_a_wrong_guess_waits_for_an_empty_replica() -> None:
    busy = world("a")
    busy.place(sized("x", 5000))
    busy.tell(begun("x"))
    busy.hold(sized("large", 19_000))
    assert placed(busy.tell(answered("x", 5000))) == [("large", "a")]
