import asyncio
import logging

import pytest

from luftpause.adapters.tools_mcp.child_log import LINE_CHARS_MAX, LINES_PER_MINUTE_MAX, ChildLog


def test_lines_are_put_together_cut_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def use() -> None:
        log = ChildLog("s")
        log.write(b"one\ntw")
        log.write(b"o\n\n" + b"x" * 10_000)
        log.write(b"\n" * 5 + b"line\n" * LINES_PER_MINUTE_MAX + b"last")
        log.close(3)

    with caplog.at_level(logging.INFO, "luftpause.tools"):
        asyncio.run(use())
    said = [entry.__dict__["line"] for entry in caplog.records if entry.message == "tool_server_said"]
    assert said[:4] == ["one", "two", "x" * LINE_CHARS_MAX, "line"]
    assert len(said) == LINES_PER_MINUTE_MAX
    left_out, ended = caplog.records[-2:]
    assert left_out.__dict__["lines"] == 4
    assert (ended.__dict__["code"], ended.__dict__["last_line"]) == (3, "last")


def test_a_flood_is_counted_without_a_look_at_each_line(caplog: pytest.LogCaptureFixture) -> None:
    async def use() -> None:
        log = ChildLog("s")
        assert not log.is_flooded
        log.write(b"line\n" * (LINES_PER_MINUTE_MAX + 1))
        assert log.is_flooded
        log.write(b"more\n" * 1000 + b"la")
        log.write(b"st\n")
        log.close(0)

    with caplog.at_level(logging.INFO, "luftpause.tools"):
        asyncio.run(use())
    left_out, ended = caplog.records[-2:]
    assert left_out.__dict__["lines"] == 1 + 1000 + 1
    assert ended.__dict__["last_line"] == "last"
