"""Chaos over the scheduling core: nothing that happens may break an invariant or an order."""

import pytest

from luftpause.core.scheduling.actions import Action, HoldTurn, PlaceTurn, RefuseTurn
from luftpause.core.scheduling.events import Event, TurnArrived
from luftpause.core.scheduling.state import Limits
from sim.chaos import LIMITS, WORKING_SET, Chaos, Tamper


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@pytest.mark.parametrize("limits", [LIMITS, WORKING_SET], ids=["turn-admission", "working-set"])
def test_a_hundred_thousand_events_break_nothing(seed: int, limits: Limits) -> None:
    chaos = Chaos(seed, limits=limits)
    chaos.run(25_000)
    assert bool(chaos.recalled) is (limits is WORKING_SET)
    assert bool(chaos.grown) is (limits is WORKING_SET)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(100, 110))
@pytest.mark.parametrize("limits", [LIMITS, WORKING_SET], ids=["turn-admission", "working-set"])
def test_a_million_events_break_nothing(seed: int, limits: Limits) -> None:
    Chaos(seed, limits=limits).run(100_000)


def lose_a_placement(_: Event, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    return tuple(action for action in actions if not (isinstance(action, PlaceTurn) and action.turn.endswith("7")))


def place_twice(_: Event, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    return actions + tuple(action for action in actions if isinstance(action, PlaceTurn))


def swallow_a_refusal(_: Event, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    return tuple(action for action in actions if not isinstance(action, RefuseTurn))


def answer_nothing_to_offers(event: Event, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    if isinstance(event, TurnArrived):
        return tuple(action for action in actions if not isinstance(action, HoldTurn))
    return actions


def turn_placements_round(_: Event, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    return tuple(reversed(actions))


@pytest.mark.parametrize(
    "tamper",
    [lose_a_placement, place_twice, swallow_a_refusal, answer_nothing_to_offers, turn_placements_round],
)
def test_orders_that_are_falsified_are_found_and_the_seed_is_told(tamper: Tamper) -> None:
    with pytest.raises(AssertionError, match="seed 1, event "):
        Chaos(1, tamper=tamper).run(5_000)
