"""The examples, run as they are at a `luftpause up`. Those that need other packages: `sh scripts/clients`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stories.programs import running
from stories.set_ups import FREE_PORTS, MODEL, launched_engines, tools, write

pytestmark = pytest.mark.timeout(120)
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
LINES_MAX = 60
RAN_S_MAX = 90


def example(name: str, *arguments: str) -> str:
    """Run an example to its end and return what it printed."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("LUFTPAUSE_")}
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=RAN_S_MAX, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("name", ["own_loop_openai", "anthropic_loop"])
def test_a_loop_of_ones_own_is_the_run_that_its_headers_name(tmp_path: Path, name: str) -> None:
    log = tmp_path / "events.jsonl"
    config = write(tmp_path, FREE_PORTS, launched_engines())
    with running(tmp_path, "up", "up", "--config", config, "--event-log", str(log)) as up:
        assert example(name, up.url("dataplane"), "Weather in Bonn? [tools:2] [parallel:1]").strip()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    turns = [line["event"] for line in lines if line.get("kind") == "TurnArrived"]
    assert len(turns) == 3
    (run,) = {turn["run"] for turn in turns}
    assert re.fullmatch(r"weather-[0-9a-f-]{36}", run)
    assert {(turn["caller"], turn["service_class"]) for turn in turns} == {("examples", "interactive")}


def test_six_sub_agents_are_awaited_with_one_call(tmp_path: Path) -> None:
    ports = f'{FREE_PORTS}default_model = "{MODEL}"\n'
    with running(tmp_path, "up", "up", "--config", write(tmp_path, ports, launched_engines(), tools(0.1))) as up:
        lines = example("mcp_fan_out", f"{up.url('runtime')}/mcp").splitlines()
    assert [line.partition(":")[0] for line in lines] == ["Bonn", "Rome", "Oslo", "Kyoto", "Lima", "Accra"]
    assert all(": Finished, 1 calls: " in line for line in lines), lines


def test_examples_are_short_and_named_in_their_list() -> None:
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text("utf-8").splitlines()) <= LINES_MAX, path.name
        assert f"`{path.name}`" in listed
