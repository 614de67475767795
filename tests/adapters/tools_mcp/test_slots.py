import asyncio

import pytest

from adapters.tools_mcp.tool_world import in_time
from luftpause.adapters.tools_mcp.slots import WAITING_MAX, NoRoomError, Slots


def test_as_many_as_come_where_there_is_no_limit() -> None:
    async def use() -> None:
        slots = Slots(0)
        async with slots.hold() as first, slots.hold() as second:
            assert (first, second) == (0.0, 0.0)

    in_time(use())


def test_others_wait_in_their_order_and_too_many_are_refused() -> None:
    order: list[int] = []

    async def wait(slots: Slots, number: int) -> None:
        async with slots.hold():
            order.append(number)

    async def use() -> None:
        slots = Slots(1)
        async with slots.hold():
            waiting = [asyncio.ensure_future(wait(slots, number)) for number in range(WAITING_MAX)]
            await asyncio.sleep(0)
            with pytest.raises(NoRoomError, match=f"{WAITING_MAX} calls wait for it already"):
                await wait(slots, -1)
            waiting[0].cancel()
            await asyncio.sleep(0)
            late = asyncio.ensure_future(wait(slots, WAITING_MAX))
        await asyncio.gather(*waiting[1:], late)

    in_time(use())
    assert order == list(range(1, WAITING_MAX + 1))
