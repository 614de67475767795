import asyncio

import pytest

from luftpause.adapters.tools_mcp.transports import ToolServerSpec, transport

uvloop = pytest.importorskip("uvloop")


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_program_that_cannot_be_started_is_named_on_every_loop(loop: object) -> None:
    async def start() -> None:
        async with transport(ToolServerSpec(name="small", command=("no-such-program",)), lambda _: None):
            raise AssertionError("there is nothing to start")

    assert callable(loop)
    with asyncio.Runner(loop_factory=loop) as runner, pytest.raises(FileNotFoundError, match="'no-such-program'"):
        runner.run(start())
