"""In which words turns for a model are turned away."""

import pytest

from core.scheduling.builders import World, arrived, only
from core.scheduling.residency.words import GIB, joined, load_failed, model
from luftpause.core.model.ids import Instant, LauncherId, ModelName
from luftpause.core.model.refusals import RefusalReason
from luftpause.core.scheduling.actions import HoldTurn, RefuseTurn
from luftpause.core.scheduling.residency.events import LauncherLost
from luftpause.core.scheduling.residency.refusing import closed_s, left_alone, refusal_of, size
from luftpause.core.scheduling.residency.room import Shortage

A = ModelName("A")


def test_what_cannot_fit_names_need_budget_and_what_is_kept() -> None:
    world = World()
    world.tell(joined(model("A", 12)))
    refusal = only(world.tell(arrived("t", model="A")), RefuseTurn).why
    assert refusal.reason is RefusalReason.INSUFFICIENT_MEMORY
    assert refusal.message == "model 'A' needs 12 GiB, but the budget of ram is 10 GiB"
    known = world.state.residency.models[A]
    kept = refusal_of(known, Shortage(12 * GIB, 10 * GIB, GIB // 2)).message
    assert kept.endswith("10 GiB, and 512 MiB of it are taken by models that are kept up")
    rival = refusal_of(known, Shortage(1, 2, 0, ModelName("B"))).message
    assert rival == "model 'A' cannot be loaded while 'B' of its group is kept up"


def test_a_model_that_failed_too_often_says_when_to_ask_again() -> None:
    world = World()
    world.tell(joined(model("A")))
    for number in range(3):
        world.tell_all([arrived(f"t{number}", model="A"), load_failed("A", "no such file")])
    known = world.state.residency.models[A]
    assert closed_s(known, Instant(1.5)) == 0.5
    assert closed_s(known, Instant(9.0)) == 0.0
    refusal = left_alone(known, Instant(0.0))
    assert refusal.retry_after_s == 2.0
    assert refusal.message == "model 'A' failed 3 times in a row and is left alone for a while: no such file"


def test_while_its_launcher_is_away_nobody_is_told_that_there_is_no_room() -> None:
    world = World()
    world.tell(joined(model("A", 12)))
    world.tell(LauncherLost(launcher=LauncherId("box")))
    only(world.tell(arrived("t", model="A")), HoldTurn)


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (6 << 30, "6 GiB")],
)
def test_bytes_are_told_as_a_person_reads_them(count: int, words: str) -> None:
    assert size(count) == words
