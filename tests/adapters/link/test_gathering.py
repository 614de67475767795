"""Whose turns wait, after a restart of the scheduler, until the others have told what they know."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from contracts.offers import MODEL, offer
from contracts.relay import bounded
from luftpause.adapters.link.gathering import Gathering
from luftpause.core.model.ids import ModelName, PeerId
from luftpause.core.model.turns import TurnOffer

LONG_S = 30.0
SOON_S = 0.05


class Door:
    """A peer that notes which of its turns are admitted, and through which gathering."""

    def __init__(self, gathering: Gathering, name: str = "door") -> None:
        self.gathering = gathering
        self.name = PeerId(name)
        self.admitted: list[TurnOffer] = []
        self.all_in = asyncio.Event()

    def offers(self, *offers: TurnOffer) -> list[bool]:
        return [self.gathering.defers(self, each) for each in offers]

    def admit_now(self, offer: TurnOffer) -> None:
        assert not self.gathering.defers(self, offer)
        self.admitted.append(offer)
        self.all_in.set()

    def turns(self) -> list[str]:
        return [each.turn for each in self.admitted]

    def returns(self) -> None:
        self.gathering.greeted(self)
        self.gathering.resynced(self, self.name, is_returning=True)


Story = Callable[[Gathering, list[ModelName]], Awaitable[None]]


def story(test: Story, *, grace_s: float = LONG_S, known: tuple[str, ...] = ()) -> None:
    async def told() -> None:
        models = [MODEL]
        gathering = Gathering(grace_s=grace_s, others_s=SOON_S, models=lambda: models, known=tuple(map(PeerId, known)))
        gathering.start()
        try:
            await test(gathering, models)
        finally:
            gathering.close()

    bounded(told)


def test_nobody_waits_at_a_first_start() -> None:
    async def test(gathering: Gathering, _: list[ModelName]) -> None:
        door = Door(gathering)
        gathering.greeted(door)
        gathering.resynced(door, PeerId("stranger"), is_returning=False)
        assert door.offers(offer(1), offer(2, model="nope")) == [False, False]

    story(test)


def test_after_a_restart_turns_wait_for_the_other_peers_and_go_out_by_arrival() -> None:
    async def test(gathering: Gathering, _: list[ModelName]) -> None:
        first, second = Door(gathering), Door(gathering)
        first.returns()
        assert first.offers(offer(1), offer(2)) == [True, True]
        second.returns()
        assert second.offers(replace(offer(3), age_s=100.0)) == [True]
        await first.all_in.wait()
        assert (first.turns(), second.turns()) == ([offer(1).turn, offer(2).turn], [offer(3).turn])
        assert first.admitted[0].age_s > 0
        assert second.admitted[0].age_s >= 100.0
        assert first.offers(offer(4)) == [False]

    story(test)


def test_a_peer_that_said_hello_is_waited_for_until_it_has_told_all_or_is_gone() -> None:
    async def test(gathering: Gathering, _: list[ModelName]) -> None:
        first, slow, gone = Door(gathering), Door(gathering), Door(gathering)
        gathering.greeted(slow)
        gathering.greeted(gone)
        first.returns()
        assert first.offers(offer(1)) == [True]
        others_had_time = asyncio.Event()
        asyncio.get_running_loop().call_later(2 * SOON_S, others_had_time.set)
        await others_had_time.wait()
        gathering.left(gone)
        assert not first.admitted
        gathering.resynced(slow, PeerId("stranger"), is_returning=True)
        assert first.turns() == [offer(1).turn]

    story(test)


def test_nobody_is_waited_for_longer_than_the_grace() -> None:
    async def test(gathering: Gathering, _: list[ModelName]) -> None:
        first, silent = Door(gathering), Door(gathering)
        gathering.greeted(silent)
        first.returns()
        assert first.offers(offer(1), offer(2, model="nope")) == [True, True]
        await first.all_in.wait()
        assert first.turns() == [offer(1).turn, offer(2).turn]

    story(test, grace_s=2 * SOON_S)


def test_a_peer_that_returns_after_the_grace_holds_up_nobody() -> None:
    async def test(gathering: Gathering, _: list[ModelName]) -> None:
        door = Door(gathering)
        door.returns()
        assert door.offers(offer(1)) == [False]

    story(test, grace_s=0.0)


def test_an_unknown_model_waits_until_somebody_declares_it() -> None:
    async def test(gathering: Gathering, models: list[ModelName]) -> None:
        door = Door(gathering)
        door.returns()
        assert door.offers(offer(1, model="late"), offer(2)) == [True, True]
        await door.all_in.wait()
        assert door.turns() == [offer(2).turn]
        models.append(ModelName("late"))
        gathering.models_changed()
        assert door.turns() == [offer(2).turn, offer(1).turn]

    story(test)


def test_turns_that_are_withdrawn_or_whose_peer_is_gone_are_never_admitted() -> None:
    async def test(gathering: Gathering, _: list[ModelName]) -> None:
        stays, leaves = Door(gathering), Door(gathering)
        stays.returns()
        assert stays.offers(offer(1), offer(2)) == [True, True]
        assert leaves.offers(offer(3)) == [True]
        gathering.withdrawn(offer(1).turn)
        gathering.left(leaves)
        await stays.all_in.wait()
        assert (stays.turns(), leaves.turns()) == ([offer(2).turn], [])

    story(test)


def test_with_remembered_peers_turns_go_as_soon_as_all_of_these_are_back() -> None:
    async def test(gathering: Gathering, _: list[ModelName]) -> None:
        new, first, second = Door(gathering, "new"), Door(gathering, "one"), Door(gathering, "two")
        gathering.greeted(new)
        gathering.resynced(new, new.name, is_returning=False)
        assert new.offers(offer(1)) == [True]
        first.returns()
        assert set(gathering.missing) == {"two"}
        assert (new.turns(), first.offers(offer(2))) == ([], [True])
        second.returns()
        assert (new.turns(), first.turns()) == ([offer(1).turn], [offer(2).turn])
        assert second.offers(offer(3)) == [False]

    story(test, known=("one", "two"))


def test_who_is_remembered_and_does_not_come_back_is_waited_for_no_longer_than_the_grace() -> None:
    async def test(gathering: Gathering, _: list[ModelName]) -> None:
        first = Door(gathering, "one")
        first.returns()
        assert first.offers(offer(1)) == [True]
        await first.all_in.wait()
        assert not gathering.missing

    story(test, grace_s=SOON_S, known=("one", "two"))


def test_one_that_returns_and_is_not_remembered_says_that_others_may_be_missing_too() -> None:
    async def test(gathering: Gathering, _: list[ModelName]) -> None:
        stranger, first = Door(gathering, "stranger"), Door(gathering, "one")
        stranger.returns()
        first.returns()
        assert first.offers(offer(1)) == [True]
        await first.all_in.wait()

    story(test, known=("one",))
