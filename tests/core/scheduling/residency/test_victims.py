"""The cheapest set of models that makes room, against all sets there are."""

import random
from itertools import combinations

import pytest

from luftpause.core.model.ids import ModelName
from luftpause.core.scheduling.residency.victims import EXHAUSTIVE_MAX, Candidate, cheapest


def candidate(name: str, cost: float, frees: int) -> Candidate:
    return Candidate(cost, ModelName(name), frees)


def best_of_all(candidates: list[Candidate], needed: int) -> tuple[float, int, tuple[str, ...]] | None:
    useful = sorted(each for each in candidates if each.frees > 0)
    sets = [chosen for size in range(len(useful) + 1) for chosen in combinations(useful, size)]
    enough = [chosen for chosen in sets if sum(each.frees for each in chosen) >= needed]
    ranks = [
        (sum(each.cost for each in chosen), len(chosen), tuple(each.model for each in chosen)) for chosen in enough
    ]
    return min(ranks, default=None)


@pytest.mark.parametrize("seed", range(60))
def test_it_is_the_cheapest_of_all_sets(seed: int) -> None:
    dice = random.Random(seed)
    count = dice.randrange(8)
    candidates = [candidate(f"m{at}", dice.choice([0, 1, 2, 5]), dice.randrange(4)) for at in range(count)]
    needed = dice.randrange(9)
    best = best_of_all(candidates, needed)
    assert cheapest(candidates, needed) == (None if best is None else best[2])


def test_of_equally_cheap_sets_the_smallest_is_taken_and_then_the_first_by_name() -> None:
    both = [candidate("b", 1, 2), candidate("a", 1, 2)]
    assert cheapest(both, 2) == ("a",)
    assert cheapest([candidate("x", 0, 1), candidate("y", 0, 1), candidate("z", 0, 2)], 2) == ("z",)


def test_nothing_is_needed_and_nobody_goes() -> None:
    assert cheapest([candidate("a", 1, 2)], 0) == ()
    assert cheapest([], 1) is None


@pytest.mark.parametrize("seed", range(20))
def test_among_many_the_set_is_enough_and_nobody_is_in_it_without_need(seed: int) -> None:
    dice = random.Random(seed)
    many = [candidate(f"m{at:02}", dice.random(), dice.randrange(1, 9)) for at in range(EXHAUSTIVE_MAX + 8)]
    frees = {each.model: each.frees for each in many}
    chosen = cheapest(many, 30)
    assert chosen is not None
    freed = sum(frees[name] for name in chosen)
    assert freed >= 30
    assert all(freed - frees[name] < 30 for name in chosen)
    assert cheapest(many, 10_000) is None
