import asyncio

from mcp_types import ResourceListChangedNotification, ToolListChangedNotification

from adapters.tools_mcp.tool_world import in_time
from luftpause.adapters.tools_mcp.changes import Changes, first_of


def test_only_word_of_tools_counts() -> None:
    async def use() -> None:
        changes = Changes()
        await changes.heard(ResourceListChangedNotification())
        await changes.heard(ValueError("nonsense"))
        assert not changes.any.is_set()
        await changes.heard(ToolListChangedNotification())
        assert changes.any.is_set()

    in_time(use())


def test_the_first_of_several_is_enough() -> None:
    async def use() -> None:
        first, second = asyncio.Event(), asyncio.Event()
        waiting = asyncio.ensure_future(first_of(first, second))
        await asyncio.sleep(0)
        second.set()
        await waiting

    in_time(use())
