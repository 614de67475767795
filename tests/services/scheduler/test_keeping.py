"""When what must outlive the scheduler is written."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence

import pytest

from contracts.relay import bounded
from core.scheduling.builders import World, arrived, finished, probed, spec
from luftpause.core.model.ids import PeerId
from luftpause.core.scheduling.decide import decide
from luftpause.core.scheduling.events import Event, MemoryRestored
from luftpause.services.scheduler import keeping
from luftpause.services.scheduler.keeping import Keeper
from services.scheduler.running import eventually

P, Q = PeerId("p"), PeerId("q")


class Shelf:
    """A store that notes what is written, and by whom; it waits while it is blocked, and breaks while it is full."""

    def __init__(self) -> None:
        self.written: list[tuple[tuple[PeerId, ...], MemoryRestored]] = []
        self.threads: set[int] = set()
        self.is_full = False
        self.free = threading.Event()
        self.free.set()
        self.begun = threading.Event()

    def write(self, peers: Sequence[PeerId], learned: MemoryRestored) -> None:
        self.begun.set()
        assert self.free.wait(10)
        if self.is_full:
            raise OSError("no space")
        self.threads.add(threading.get_ident())
        self.written.append((tuple(peers), learned))


def tell(keeper: Keeper, world: World, event: Event) -> None:
    decision = decide(world.state, event, world.now)
    keeper.decided(world.state, event, world.now, decision)
    world.state = decision.state


async def until(shelf: Shelf, count: int) -> None:
    await eventually(lambda: len(shelf.written) >= count)


def story(test: Callable[[Keeper, Shelf, World], Awaitable[None]], known: Sequence[PeerId] = ()) -> Shelf:
    shelf = Shelf()

    async def told() -> None:
        keeper = Keeper(shelf, known)
        try:
            await test(keeper, shelf, World(spec("a")))
        finally:
            shelf.free.set()
            await keeper.close()

    bounded(told)
    return shelf


def test_a_change_of_the_peers_is_written_soon_by_another_thread() -> None:
    async def test(keeper: Keeper, shelf: Shelf, _: World) -> None:
        keeper.peers_changed((P,))
        keeper.peers_changed((P, Q))
        await until(shelf, 1)
        assert [peers for peers, _ in shelf.written] == [(P, Q)]
        assert threading.get_ident() not in shelf.threads

    story(test)


@pytest.mark.interpreted
def test_what_was_learned_is_written_once_for_many_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "LEARNED_EVERY_S", 0.02)

    async def test(keeper: Keeper, shelf: Shelf, world: World) -> None:
        for event in (arrived("t1", "r"), finished("t1", tools=("look",)), arrived("t2", "r")):
            tell(keeper, world, event)
        await until(shelf, 1)
        (peers, learned), *more = shelf.written
        assert not more
        assert peers == (P,), "those of the scheduler before this one, until others are there"
        assert [tool.tool for tool in learned.tools] == ["look"]
        assert [replica.placed for replica in learned.replicas] == [2]

    story(test, known=(P,))


def test_nothing_is_written_while_nothing_changes_but_at_the_end() -> None:
    async def test(keeper: Keeper, shelf: Shelf, world: World) -> None:
        tell(keeper, world, probed("a"))
        assert not shelf.written

    assert len(story(test).written) == 1


@pytest.mark.interpreted
def test_a_slow_disk_is_written_to_once_at_a_time_and_then_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "PEERS_WITHIN_S", 0.0)

    async def test(keeper: Keeper, shelf: Shelf, _: World) -> None:
        shelf.free.clear()
        keeper.peers_changed((P,))
        await asyncio.to_thread(shelf.begun.wait, 10)
        for peers in ((Q,), (P, Q)):
            keeper.peers_changed(peers)
            for _turn in range(3):
                await asyncio.sleep(0)  # the timer is due at once
        assert not shelf.written
        shelf.free.set()
        await until(shelf, 2)
        assert [peers for peers, _ in shelf.written] == [(P,), (P, Q)]

    story(test)


@pytest.mark.interpreted
def test_a_full_disk_is_told_of_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "PEERS_WITHIN_S", 0.0)

    async def test(keeper: Keeper, shelf: Shelf, _: World) -> None:
        shelf.is_full = True
        for _turn in range(3):
            shelf.begun.clear()
            keeper.peers_changed((P,))
            await asyncio.to_thread(shelf.begun.wait, 10)

    with caplog.at_level(logging.WARNING):
        story(test)
    assert [record.message for record in caplog.records] == ["memory_not_kept"]
