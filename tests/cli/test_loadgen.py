"""The loadgen command as a process, against a fake engine in this one."""

import asyncio
import json
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from luftpause.cli.loadgen import command
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.fake_engine.server import fake_engine
from luftpause.testkit.fake_engine.settings import Settings
from testkit.commands import command_line, finished
from testkit.running import request, run, until

QUICK = Settings(figures=EngineFigures(step_s=0.0005, decode_s=0.0, prefill_tps=1e6), ttft_s=0.0)


async def turn_taken(url: str) -> bool:
    return b"} 0.0" not in (await request(f"{url}/metrics"))[2].partition(b"vllm:generation_tokens_total{")[2]


def loadgen(*options: str, interrupt: bool = False) -> tuple[int, str, str]:
    """Return exit code, output and errors of a load on a fake engine."""

    async def once() -> tuple[int, str, str]:
        async with fake_engine(QUICK) as url:
            process = await asyncio.create_subprocess_exec(
                *command_line("loadgen", "--base-url", f"{url}/v1", *options),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                if interrupt:
                    await until(lambda: turn_taken(url))
                    process.send_signal(signal.SIGINT)
                out, err = await process.communicate()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            assert process.returncode is not None
            return process.returncode, out.decode(), err.decode()

    return run(once())


def test_a_load_is_summed_up_as_json() -> None:
    code, out, _ = loadgen("--agents", "2", "--runs", "4", "--tool-s", "0", "--class", "batch", "--json", "-")
    summary = json.loads(out)
    assert code == 0
    assert (summary["runs"], summary["failed"], summary["class"]) == (4, 0, "batch")
    assert summary["turns"] == 16


def test_a_load_is_summed_up_for_people_and_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    code, out, err = loadgen("--agents", "1", "--tool-calls", "0", "--json", str(file))
    assert (code, err) == (0, "")
    assert "runs         1 in " in out
    assert json.loads(file.read_text(encoding="utf-8"))["runs"] == 1


def test_ctrl_c_shows_what_there_is_so_far() -> None:
    code, out, _ = loadgen("--agents", "1", "--tool-s", "3600", "--json", "-", interrupt=True)
    summary = json.loads(out)
    assert code == 0
    assert (summary["runs"], summary["unfinished"]) == (0, 1)


def test_a_task_is_for_sub_agents_only() -> None:
    ended = finished("loadgen", "--agents", "1", "--task", "say hello")
    assert ended.returncode == 2
    assert "--spawn" in ended.stderr


def test_a_failed_run_is_exit_code_1() -> None:
    code, out, _ = loadgen("--agents", "1", "--model", "nope")
    assert code == 1
    assert "http_404" in out


@pytest.mark.parametrize(
    "options",
    [(), ("--agents", "1", "--spawn", "1"), ("--agents", "x"), ("--agents", "1", "--token-env", "NO_SUCH_VARIABLE")],
)
def test_wrong_options_are_exit_code_2(options: tuple[str, ...]) -> None:
    assert CliRunner().invoke(command, options).exit_code == 2


@pytest.mark.parametrize(
    "options",
    [("--agents", "1", "--base-url", "http://127.0.0.1:1"), ("--spawn", "1", "--mcp-url", "http://127.0.0.1:1/mcp")],
)
def test_a_door_that_is_not_there_is_one_line_and_exit_code_1(options: tuple[str, ...]) -> None:
    done = finished("loadgen", *options)
    assert done.returncode == 1
    assert done.stderr.startswith("error: unreachable: http://127.0.0.1:1")
    assert "start `luftpause up`" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
