"""A persistent list in order of standing."""

import random
from operator import attrgetter

import pytest

from luftpause.core.scheduling.ranking import CHUNK_MAX, CHUNK_MIN, Ranking
from luftpause.core.scheduling.standings import Standing

Told = dict[str, tuple[Standing, int]]


def told_by(ranking: Ranking) -> Told:
    return {entry.name: (entry.standing, entry.queues) for entry in ranking.entries(-1)}


def prove(ranking: Ranking, told: Told) -> None:
    entries = list(ranking.entries(-1))
    assert told_by(ranking) == told
    assert entries == sorted(entries, key=attrgetter("standing"))
    lengths = [len(chunk.entries) for chunk in ranking.chunks]
    assert max(lengths, default=0) <= CHUNK_MAX
    assert len(lengths) < 2 or min(lengths) >= CHUNK_MIN
    for bit in (1, 2, 4, 8, 1 << 200):
        first = next((entry for entry in entries if entry.queues & bit), None)
        assert ranking.first(bit) == first
        assert bool(ranking.queues & bit) is (first is not None)
        assert list(ranking.entries(bit)) == [entry for entry in entries if entry.queues & bit]


@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_a_sorted_table_would_be_however_it_grows_and_shrinks(seed: int) -> None:
    dice = random.Random(seed)
    ranking, told = Ranking(), Told()
    for number in range(3000):
        grows = number % 1500 < 800
        roll = dice.random()
        if not told or roll < (0.6 if grows else 0.1):
            name = f"n{dice.randrange(400)}"
            standing = told[name][0] if name in told else (dice.randrange(3), number)
            bit = dice.choice((1, 1, 1, 2, 4, 8, 1 << 200))
            ranking = ranking.joined(standing, name, bit)
            told[name] = standing, told.get(name, (standing, 0))[1] | bit
        elif roll < 0.7:
            name = dice.choice(list(told))
            old, queues = told[name]
            fresh = max(0, old[0] + dice.choice((-1, 1))), number
            ranking, told[name] = ranking.moved(old, fresh), (fresh, queues)
        else:
            name = dice.choice(list(told))
            standing, queues = told[name]
            bit = queues & -queues
            ranking = ranking.left(standing, bit)
            told[name] = standing, queues & ~bit
            if not told[name][1]:
                del told[name]
        if number % 50 == 0:
            prove(ranking, told)
    prove(ranking, told)


def test_an_older_list_stays_as_it_was() -> None:
    before = Ranking()
    for number in range(200):
        before = before.joined((0, number), f"n{number}", 1)
    kept = told_by(before)
    before.moved((0, 0), (1, 500)).left((0, 7), 1).joined((0, 900), "new", 2)
    assert told_by(before) == kept


def test_who_leaves_its_last_queue_is_not_in_it_any_more() -> None:
    ranking = Ranking().joined((0, 1), "a", 1).joined((0, 1), "a", 2)
    assert told_by(ranking.left((0, 1), 1)) == {"a": ((0, 1), 2)}
    assert ranking.left((0, 1), 1).left((0, 1), 2) == Ranking()
