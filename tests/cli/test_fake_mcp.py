"""The fake-mcp command as a process."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from mcp import Client
from mcp_types import TextContent

from luftpause.cli.fake_mcp import command
from testkit.commands import END_S_MAX, ready, started, stopped
from testkit.running import run


def test_it_serves_its_tools_where_it_says_and_ends_on_a_signal(tmp_path: Path) -> None:
    file, effects = tmp_path / "ready.json", tmp_path / "effects"
    options = ("--delay-s", "0", "--destructive", "--effects", str(effects), "--ready-file", str(file))
    with started("fake-mcp", "--port", "0", *options) as process:
        told = ready(process, file)
        assert told["pid"] == process.pid

        async def call() -> str:
            async with Client(f"{told['fake_mcp']}/mcp") as client:
                [part] = (await client.call_tool("delete_note", {"name": "monday"})).content
                assert isinstance(part, TextContent)
                return part.text

        assert "monday" in run(call())
        assert effects.read_text(encoding="utf-8").count("\n") == 1
        assert stopped(process) == 0


def test_a_client_that_stays_does_not_keep_it(tmp_path: Path) -> None:
    file = tmp_path / "ready.json"
    with started("fake-mcp", "--port", "0", "--ready-file", str(file)) as process:
        url = f"{ready(process, file)['fake_mcp']}/mcp"

        async def stay() -> int:
            async with Client(url, mode="legacy") as client:
                await client.list_tools()
                return stopped(process)

        assert run(stay()) == 0


def test_over_stdio_it_ends_with_its_input() -> None:
    with started("fake-mcp", "--stdio") as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=END_S_MAX) == 0


def test_over_stdio_it_ends_on_a_signal_though_its_input_stays_open() -> None:
    with started("fake-mcp", "--stdio") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        process.stdin.flush()
        assert process.stdout.readline()
        assert stopped(process) == 0


@pytest.mark.parametrize("options", [("--delay-s", "-1"), ("--port", "70000"), ("--nope",)])
def test_wrong_options_are_exit_code_2(options: tuple[str, ...]) -> None:
    assert CliRunner().invoke(command, options).exit_code == 2
