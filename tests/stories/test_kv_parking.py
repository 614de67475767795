"""A run whose model was swapped out comes back to what it had computed: whole programs, engines that pretend."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from stories.launching import WAIT_S, model, models, until
from stories.programs import Program, running
from stories.set_ups import FREE_PORTS, write

ENGINE = (
    '["${python}", "-m", "luftpause", "fake-engine", "--port", "${port}", "--model", "${model}", '
    '"--slot-save-path", "${slots}", "--metrics-style", "llama.cpp", "--slots", "4", "--prefill-tps", "2000"%s]'
)
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
TASK = {"role": "user", "content": "a long story " * 300 + "[tools:1]"}


def configured(tmp_path: Path, more: str = "", parking: str = "") -> str:
    return write(
        tmp_path,
        FREE_PORTS,
        '\n[launcher]\nmin_residency = "0s"\nmax_wait = "100ms"\nmemory = "10GiB"\nstop_grace = "2s"\n' + parking,
        '[[launcher.groups]]\nname = "one"\n',
        *(model(name, command=ENGINE % more, memory='"1GiB"', group='"one"') for name in ("a", "b")),
    )


@pytest.fixture
def up(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Program]:
    with running(tmp_path, "up", "up", "--config", configured(tmp_path, *request.param)) as program:
        yield program


def ask(up: Program, name: str, *messages: dict[str, Any], run: str = "") -> dict[str, Any]:
    body = {"model": name, "messages": messages, "tools": [TOOL], "max_tokens": 16}
    headers = {"x-luftpause-run-id": run} if run else {}
    url = up.url("dataplane") + "/v1/chat/completions"
    answer = httpx2.post(url, json=body, headers=headers, timeout=WAIT_S)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def swap_out_and_back(up: Program) -> tuple[dict[str, Any], int]:
    """Return what is known of model `a` while it is down, and how many tokens its run then finds."""
    said = ask(up, "a", TASK, run="r")["choices"][0]["message"]
    ask(up, "b", {"role": "user", "content": "hi [tools:0]"})
    known = models(up.url("scheduler"))["a"]
    result = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "found"}
    usage = ask(up, "a", TASK, said, result, run="r")["usage"]
    return known, int(usage["prompt_tokens_details"]["cached_tokens"])


def files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "state" / "launcher" / "kv").rglob("*.kv"))


@pytest.mark.parametrize("up", [()], indirect=True)
def test_a_run_comes_back_to_what_it_had(up: Program, tmp_path: Path) -> None:
    known, cached = swap_out_and_back(up)
    assert (known["state"], known["parked"]["runs"]) == ("down", 1)
    assert known["parked"]["bytes"] > 900 * 1024
    assert cached > 900
    assert models(up.url("scheduler"))["a"]["slots"] == 4
    assert models(up.url("scheduler"))["a"]["parked"] == {"runs": 0, "bytes": 0}
    until(lambda: files(tmp_path) == [])


@pytest.mark.parametrize(
    ("up", "parked", "line"),
    [
        ((', "--slot-fails", "save"',), 0, "kv_not_saved"),
        ((', "--slot-fails", "restore"',), 1, "kv_not_restored"),
        (("", 'kv_parking = "off"\n'), 0, ""),
    ],
    indirect=["up"],
)
def test_whatever_fails_the_turn_is_served(up: Program, tmp_path: Path, parked: int, line: str) -> None:
    known, cached = swap_out_and_back(up)
    assert known["parked"]["runs"] == parked
    assert cached == 0
    said = [json.loads(each) for each in up.output.read_text().splitlines() if each.startswith("{")]
    assert [each["event"] for each in said if each["event"].startswith("kv_not")] == ([line] if line else [])
    until(lambda: files(tmp_path) == [])


@pytest.mark.parametrize("up", [()], indirect=True)
def test_a_file_goes_with_its_run_and_none_outlives_the_launcher(up: Program, tmp_path: Path) -> None:
    for run in ("r", "s"):
        ask(up, "a", TASK, run=run)
    ask(up, "b", {"role": "user", "content": "hi [tools:0]"})
    assert len(files(tmp_path)) == 2
    folder = files(tmp_path)[0].parent
    assert (folder.stat().st_mode & 0o777, files(tmp_path)[0].stat().st_mode & 0o777) == (0o700, 0o600)
    assert httpx2.delete(up.url("dataplane") + "/v1/runs/r", timeout=WAIT_S).status_code in (200, 204)
    assert models(up.url("scheduler"))["a"]["parked"]["runs"] == 1
    assert up.interrupt() == 0
    until(lambda: files(tmp_path) == [])
