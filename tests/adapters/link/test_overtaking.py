"""Offers that come sooner than what another peer has to say of their runs."""

import asyncio
from collections.abc import Awaitable, Callable

from contracts.offers import offer
from contracts.relay import bounded
from luftpause.adapters.link.overtaking import Overtaking
from luftpause.core.model.turns import TurnOffer

LONG_S = 30.0
AT_ONCE_S = 0.001


class Door:
    """A peer that notes which of its turns are admitted. `unknown`: the turns for which nobody has told the word."""

    def __init__(self, unknown: set[str], *, wait_s: float = LONG_S) -> None:
        self.unknown = unknown
        self.overtaking = Overtaking(lambda each: each.turn in unknown, wait_s=wait_s)
        self.admitted: list[TurnOffer] = []
        self.came = asyncio.Event()

    def admit_now(self, offer: TurnOffer) -> None:
        assert not self.overtaking.defers(self, offer), "it has waited"
        self.admitted.append(offer)
        self.came.set()


def story(test: Callable[[Door], Awaitable[None]], *unknown: int, wait_s: float = LONG_S) -> None:
    async def told() -> None:
        door = Door({offer(turn).turn for turn in unknown}, wait_s=wait_s)
        await test(door)
        door.overtaking.close()

    bounded(told)


def test_an_offer_whose_run_is_clear_does_not_wait() -> None:
    async def test(door: Door) -> None:
        assert not door.overtaking.defers(door, offer(1))

    story(test, 2)


def test_an_offer_waits_until_the_word_is_here() -> None:
    async def test(door: Door) -> None:
        assert door.overtaking.defers(door, offer(1))
        assert door.overtaking.defers(door, offer(2))
        door.overtaking.turn_over(offer(9).turn)
        assert not door.admitted
        door.unknown.discard(offer(2).turn)
        door.overtaking.turn_over(offer(9).turn)
        assert [each.turn for each in door.admitted] == [offer(2).turn]
        assert door.admitted[0].age_s >= 0.0

    story(test, 1, 2)


def test_an_offer_that_no_word_comes_for_begins_a_run_of_its_own() -> None:
    async def test(door: Door) -> None:
        assert door.overtaking.defers(door, offer(1))
        await door.came.wait()
        assert [each.turn for each in door.admitted] == [offer(1).turn]

    story(test, 1, wait_s=AT_ONCE_S)


def test_a_turn_that_is_over_and_one_whose_peer_left_are_not_admitted() -> None:
    async def test(door: Door) -> None:
        other = Door(set())
        for peer, turn in ((door, 1), (door, 2), (other, 3)):
            assert door.overtaking.defers(peer, offer(turn))
        door.overtaking.turn_over(offer(1).turn)
        door.overtaking.left(other)
        door.unknown.clear()
        door.overtaking.turn_over(offer(9).turn)
        assert [each.turn for each in door.admitted] == [offer(2).turn]
        assert not other.admitted

    story(test, 1, 2, 3)


def test_nobody_is_admitted_after_the_end() -> None:
    async def test(door: Door) -> None:
        assert door.overtaking.defers(door, offer(1))
        door.overtaking.close()
        door.unknown.clear()
        door.overtaking.turn_over(offer(9).turn)
        assert not door.admitted

    story(test, 1)
