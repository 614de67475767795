"""Which slot a turn goes to, and whose KV is where."""

import pytest

from luftpause.core.model.ids import Instant, ModelName, RunId, TurnId
from luftpause.core.scheduling.residency import slots
from luftpause.core.scheduling.residency.kv_state import Slot
from luftpause.core.scheduling.residency.state import Residency

A = ModelName("A")
EXPECTED = RunId("expected")


def held(run: str, used_at: float = 0.0, tokens: int = 100) -> Slot:
    return Slot(run=RunId(run), tokens=tokens, used_at=Instant(used_at))


def busy(run: str) -> Slot:
    return Slot(run=RunId(run), turn=TurnId(f"turn of {run}"))


def left(used_at: float) -> Slot:
    return Slot(tokens=100, used_at=Instant(used_at))


@pytest.mark.parametrize(
    ("there", "run", "at"),
    [
        ([Slot(), held("r")], "r", 1),
        ([held("r", 1.0), held("r", 2.0)], "r", 1),
        ([busy("r"), Slot()], "r", 1),
        ([Slot(), left(1.0), left(2.0)], "new", 2),
        ([held("x"), Slot()], "new", 1),
        ([held("expected", 1.0), held("idle", 2.0)], "new", 1),
        ([held("idle", 3.0), held("other", 2.0)], "new", 1),
        ([held("idle"), busy("r")], None, 0),
        ([busy("r"), busy("s")], "r", None),
        ([], "r", None),
    ],
)
def test_its_own_then_what_somebody_left_then_an_empty_one_then_the_least_valuable(
    there: list[Slot], run: str | None, at: int | None
) -> None:
    assert slots.choose(there, None if run is None else RunId(run), lambda each: each == EXPECTED) == at


def test_a_slot_is_its_runs_until_another_takes_it() -> None:
    it = slots.opened(Residency(), A, 2)
    it = slots.taken(it, A, 1, RunId("r"), TurnId("t"))
    assert slots.slot_of(it, A, TurnId("t")) == 1
    it = slots.settled(it, A, TurnId("t"), 70, Instant(5.0))
    assert it.slots[A] == (Slot(), Slot(run=RunId("r"), tokens=70, used_at=Instant(5.0)))
    again = slots.taken(it, A, 1, RunId("r"), TurnId("u"))
    assert slots.settled(again, A, TurnId("u"), 0, Instant(6.0)).slots[A][1].tokens == 70
    assert slots.taken(it, A, 1, RunId("s"), TurnId("u")).slots[A][1].tokens == 0


def test_what_a_forgotten_run_leaves_is_nobodys() -> None:
    it = slots.opened(Residency(), A, 1)
    it = slots.settled(slots.taken(it, A, 0, RunId("r"), TurnId("t")), A, TurnId("t"), 70, Instant(5.0))
    assert slots.left_behind(it, A, RunId("s")) is it
    assert slots.left_behind(it, A, RunId("r")).slots[A] == (Slot(tokens=70, used_at=Instant(5.0)),)
    assert slots.left_behind(it, ModelName("B"), RunId("r")) is it


def test_an_engine_that_tells_of_no_slots_has_none() -> None:
    it = slots.opened(Residency(), A, 2)
    assert not slots.opened(it, A, 0).slots
    assert not slots.closed(it, A).slots
    assert slots.closed(Residency(), A) == Residency()
    assert len(slots.opened(it, A, 1 << 20).slots[A]) == slots.SLOTS_MAX
    assert slots.settled(it, A, TurnId("nobody"), 1, Instant(0.0)) is it


def test_a_turn_that_its_engine_placed_is_adrift_until_it_ends() -> None:
    it = slots.opened(Residency(), A, 2)
    both = slots.let_go(slots.let_go(it, A, TurnId("t")), A, TurnId("u"))
    assert both.adrift[A] == ("t", "u")
    one = slots.settled(both, A, TurnId("t"), 5, Instant(1.0))
    assert slots.settled(one, A, TurnId("t"), 5, Instant(1.0)) is one
    assert slots.settled(one, A, TurnId("u"), 5, Instant(1.0)) == it
    assert not slots.closed(one, A).adrift
    assert not slots.opened(one, A, 2).adrift
    assert slots.slot_of(it, ModelName("B"), TurnId("t")) is None
