"""The fake engine over real sockets, with raw HTTP and with the `openai` package."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import openai
import pytest
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.fake_engine.server import fake_engine
from luftpause.testkit.fake_engine.settings import BODY_BYTES_MAX, MetricsStyle, Settings
from testkit.running import request, run, until

FIGURES = EngineFigures(step_s=0.001, decode_s=0.0, prefill_tps=1e6, max_running=2, kv_tokens=131_072)
QUICK = Settings(figures=FIGURES, ttft_s=0.0)
LOOKUP = {
    "type": "function",
    "function": {
        "name": "lookup",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}


def body(task: str, **more: object) -> bytes:
    return json.dumps({"model": "fake-1b", "messages": [{"role": "user", "content": task}], **more}).encode()


def post(path: str, data: bytes, settings: Settings = QUICK) -> tuple[int, dict[str, str], bytes]:
    async def once() -> tuple[int, dict[str, str], bytes]:
        async with fake_engine(settings) as url:
            return await request(url + path, method="POST", body=data)

    return run(once())


def chat(data: bytes, settings: Settings = QUICK) -> tuple[int, dict[str, str], bytes]:
    return post("/v1/chat/completions", data, settings)


@asynccontextmanager
async def client(settings: Settings = QUICK) -> AsyncIterator[openai.AsyncOpenAI]:
    async with (
        fake_engine(settings) as url,
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as openai_client,
    ):
        yield openai_client


async def load_of(url: str) -> tuple[int, int]:
    """Return how many requests run and wait, as /metrics says."""
    _, _, page = await request(f"{url}/metrics")
    found = {s.name: int(s.value) for family in text_string_to_metric_families(page.decode()) for s in family.samples}
    return found["vllm:num_requests_running"], found["vllm:num_requests_waiting"]


@asynccontextmanager
async def streaming(url: str, task: str) -> AsyncIterator[asyncio.StreamReader]:
    """Have a stream under way; leaving the block closes the connection."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    data = body(task, stream=True)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    try:
        yield reader
    finally:
        writer.close()
        await writer.wait_closed()


def test_a_reply_comes_whole_with_its_usage() -> None:
    status, headers, answer = chat(body("Where does the Danube rise? [tokens:20]", n=3))
    assert (status, headers["content-type"]) == (200, "application/json")
    completion: dict[str, Any] = json.loads(answer)
    [choice] = completion["choices"]
    assert completion["object"] == "chat.completion"
    assert choice["message"]["content"].startswith('On "Where does the Danube rise?"')
    assert choice["finish_reason"] == "stop"
    usage = completion["usage"]
    assert usage["completion_tokens"] == 20
    assert usage["total_tokens"] == usage["prompt_tokens"] + 20
    assert usage["prompt_tokens_details"] == {"cached_tokens": 0}


def test_a_stream_opens_with_the_role_and_ends_with_the_reason_the_usage_and_done() -> None:
    _, headers, answer = chat(body("t [tokens:5]", stream=True, stream_options={"include_usage": True}))
    assert headers["content-type"].startswith("text/event-stream")
    events = [line.removeprefix(b"data: ") for line in answer.split(b"\r\n") for line in line.split(b"\n\n") if line]
    events = [event for event in events if event.startswith((b"{", b"[DONE"))]
    assert events.pop() == b"[DONE]"
    chunks = [json.loads(event) for event in events]
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert len([chunk for chunk in chunks if chunk["choices"] and chunk["choices"][0]["delta"].get("content")]) == 5
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 5
    assert len({chunk["id"] for chunk in chunks}) == 1


def test_usage_is_streamed_only_to_those_who_ask() -> None:
    assert b"usage" not in chat(body("t", stream=True))[2]


def test_the_openai_package_carries_a_streamed_conversation_through_its_tools() -> None:
    async def talk() -> None:
        async with client(replace(QUICK, figures=structs.replace(FIGURES, page_tokens=1))) as c:
            messages: list[Any] = [{"role": "user", "content": "Where does the Danube rise? [tools:2][parallel:2]"}]
            finishes, cached = [], []
            for _ in range(3):
                text, calls = "", dict[int, dict[str, str]]()
                stream = await c.chat.completions.create(
                    model="fake-1b",
                    messages=messages,
                    tools=[LOOKUP],
                    stream=True,
                    stream_options={"include_usage": True},
                )  # type: ignore[call-overload]
                async for chunk in stream:
                    if chunk.usage:
                        cached.append(chunk.usage.prompt_tokens_details.cached_tokens / chunk.usage.prompt_tokens)
                    for choice in chunk.choices:
                        finishes += [choice.finish_reason] if choice.finish_reason else []
                        text += choice.delta.content or ""
                        for piece in choice.delta.tool_calls or ():
                            call = calls.setdefault(
                                piece.index, {"id": piece.id, "name": piece.function.name, "arguments": ""}
                            )
                            call["arguments"] += piece.function.arguments
                wire = [
                    {"id": call["id"], "type": "function", "function": {k: call[k] for k in ("name", "arguments")}}
                    for call in calls.values()
                ]
                messages.append(
                    {"role": "assistant", "content": text or None, **({"tool_calls": wire} if wire else {})}
                )
                for call in calls.values():
                    assert list(json.loads(call["arguments"])) == ["query"]
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": "in the hills"})
            assert finishes == ["tool_calls", "tool_calls", "stop"]
            assert "in the hills" in text
            assert cached[0] == 0
            assert all(share > 0.7 for share in cached[1:])
            ids = [call["id"] for message in messages for call in message.get("tool_calls", ())]
            assert len(set(ids)) == 4

    run(talk())


def test_the_openai_package_reads_a_whole_tool_call_and_the_models() -> None:
    async def talk() -> None:
        async with client(replace(QUICK, models=("a", "b"))) as c:
            assert [model.id async for model in await c.models.list()] == ["a", "b"]
            reply = await c.chat.completions.create(
                model="b", messages=[{"role": "user", "content": "Danube"}], tools=[LOOKUP], tool_choice="required"
            )  # type: ignore[call-overload]
            [call] = reply.choices[0].message.tool_calls
            assert reply.choices[0].message.content is None
            assert json.loads(call.function.arguments) == {"query": "Danube"}

    run(talk())


REFUSED: list[tuple[bytes, int, str]] = [
    (b"{", 400, "no valid request"),
    (b"\xff", 400, "no valid request"),
    (b"[]", 400, "no valid request"),
    (b'{"model": "fake-1b"}', 400, "messages"),
    (b'{"model": "fake-1b", "messages": []}', 400, "messages"),
    (b'{"model": "fake-1b", "messages": "hello"}', 400, "messages"),
    (b'{"model": "other", "messages": []}', 404, "'other'"),
    (body("[fail:429]"), 429, "429"),
    (body("[fail:500]"), 500, "500"),
    (body("t", tool_choice={"type": "function", "function": {"name": "nope"}}), 400, "'nope'"),
    (body("x" * 600_000), 400, "131072 tokens"),
    (b" " * (BODY_BYTES_MAX + 1), 413, "bytes"),
]


def test_what_cannot_be_answered_gets_an_error_that_says_why() -> None:
    async def ask() -> list[tuple[int, dict[str, str], bytes]]:
        async with fake_engine(QUICK) as url:
            path = f"{url}/v1/chat/completions"
            return [await request(path, method="POST", body=data) for data, _, _ in REFUSED]

    for (got, headers, answer), (data, status, says) in zip(run(ask()), REFUSED, strict=True):
        assert got == status, data[:100]
        assert says in json.loads(answer)["error"]["message"]
        assert (headers.get("retry-after") == "1") == (status == 429)


def test_unknown_paths_and_methods_are_refused() -> None:
    assert post("/v1/rerank", b"{}")[0] == 404
    assert post("/v1/models", b"{}")[0] == 405


def test_a_failure_asked_for_once_is_over_after_one() -> None:
    async def thrice() -> list[int]:
        async with fake_engine(QUICK) as url:
            path = f"{url}/v1/chat/completions"
            return [(await request(path, method="POST", body=body("t [fail:503:1]")))[0] for _ in range(3)]

    assert run(thrice()) == [503, 200, 200]


def test_a_reply_that_dies_is_cut_in_the_middle() -> None:
    _, _, streamed = chat(body("t [die] [tokens:10]", stream=True))
    assert streamed.count(b'"content":') == 1 + 5
    assert b"[DONE]" not in streamed
    assert not streamed.endswith(b"0\r\n\r\n")
    _, headers, whole = chat(body("t [die] [tokens:10]"))
    assert 0 < len(whole) < int(headers["content-length"])


def test_while_it_loads_every_path_says_so() -> None:
    async def ask() -> list[int]:
        async with fake_engine(replace(QUICK, load_s=3600)) as url:
            return [(await request(url + path))[0] for path in ("/health", "/v1/models", "/metrics")]

    assert run(ask()) == [503, 503, 503]


def test_health_and_models_answer_once_it_has_loaded() -> None:
    async def ask() -> None:
        async with fake_engine(replace(QUICK, load_s=0.05)) as url:

            async def loaded() -> bool:
                return (await request(f"{url}/health"))[0] == 200

            await until(loaded)
            assert (await request(f"{url}/v1/models"))[0] == 200
            assert (await request(f"{url}/health", method="HEAD"))[2] == b""

    run(ask())


def test_a_client_that_leaves_frees_its_slot_and_the_next_one_moves_up() -> None:
    async def leave() -> None:
        async with fake_engine(QUICK) as url:
            async with streaming(url, "a [stall]"), streaming(url, "c [stall]"):
                async with streaming(url, "b [stall]") as waiting:

                    async def crowded() -> bool:
                        return await load_of(url) == (2, 1)

                    await until(crowded)
                    assert not waiting.at_eof()

                async def queue_left() -> bool:
                    return await load_of(url) == (2, 0)

                await until(queue_left)

            async def idle() -> bool:
                return await load_of(url) == (0, 0)

            await until(idle)

    run(leave())


def test_a_client_that_leaves_before_its_whole_reply_frees_its_slot() -> None:
    async def leave() -> None:
        async with fake_engine(QUICK) as url:
            asking = asyncio.create_task(
                request(f"{url}/v1/chat/completions", method="POST", body=body("t [tokens:100000]"))
            )

            async def running(count: int) -> bool:
                return await load_of(url) == (count, 0)

            await until(lambda: running(1))
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await until(lambda: running(0))

    run(leave())


def test_a_stalled_stream_says_half_and_then_nothing() -> None:
    async def listen() -> None:
        async with fake_engine(QUICK) as url, streaming(url, "t [stall] [tokens:6]") as reader:
            seen = b""
            while seen.count(b'"content":') < 1 + 3:
                seen += await reader.read(65_536)
            assert await load_of(url) == (1, 0)
            assert b'finish_reason":"stop' not in seen

    run(listen())


def test_an_engine_that_stops_cuts_its_streams() -> None:
    async def stop() -> bytes:
        async with fake_engine(QUICK) as url:
            host, _, port = url.removeprefix("http://").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            data = body("t [stall]", stream=True)
            writer.write(
                b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(data) + data
            )
            first = await reader.readuntil(b"\n\n")
        rest = await reader.read()
        writer.close()
        await writer.wait_closed()
        return first + rest

    assert b"[DONE]" not in run(stop())


def test_the_same_seed_says_the_same_and_another_seed_something_else() -> None:
    def said(seed: int) -> tuple[str, str]:
        reply = json.loads(chat(body("t"), replace(QUICK, seed=seed))[2])
        return reply["id"], reply["choices"][0]["message"]["content"]

    assert said(1) == said(1)
    assert said(1)[0] != said(2)[0]
    assert said(1)[1] != said(2)[1]


def test_classify_answers_in_the_shape_of_vllm() -> None:
    status, _, answer = post("/classify", json.dumps({"model": "fake-1b", "input": ["urgent!", "look it up"]}).encode())
    classified = json.loads(answer)
    assert (status, classified["object"], len(classified["data"])) == (200, "list", 2)
    first = classified["data"][0]
    assert (first["index"], first["label"], first["num_classes"], len(first["probs"])) == (0, "urgent", 3, 3)
    assert classified["usage"]["prompt_tokens"] > 0
    assert post("/classify", b'{"model": "fake-1b", "input": "one text"}')[0] == 200
    assert post("/classify", b'{"model": "other", "input": "x"}')[0] == 404
    assert post("/classify", b'{"model": "fake-1b"}')[0] == 400


def test_usage_is_left_out_where_the_message_says_so() -> None:
    assert "usage" not in json.loads(chat(body("t [no-usage]"))[2])
    streamed = chat(body("t [no-usage]", stream=True, stream_options={"include_usage": True}))[2]
    assert b"usage" not in streamed
    assert b"[DONE]" in streamed


def test_a_reply_of_a_wanted_format_is_json() -> None:
    schema = {"type": "object", "properties": {"label": {"enum": ["urgent", "other"]}}, "required": ["label"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "label", "strict": True, "schema": schema}}
    [choice] = json.loads(chat(body("which?", response_format=wanted))[2])["choices"]
    assert json.loads(choice["message"]["content"]) == {"label": "urgent"}
    assert chat(body("t", response_format={"type": "yaml"}))[0] == 400


def test_an_engine_that_looks_at_priorities_takes_the_smaller_first() -> None:
    figures = structs.replace(FIGURES, max_running=1, step_s=0.02, queue="priority")

    async def ask() -> list[str]:
        ended: list[str] = []
        async with client(replace(QUICK, figures=figures)) as c:

            async def one(task: str, priority: int) -> None:
                messages: Any = [{"role": "user", "content": f"{task} [tokens:5]"}]
                await c.chat.completions.create(model="fake-1b", messages=messages, extra_body={"priority": priority})
                ended.append(task)

            running = asyncio.create_task(one("running", 9))
            url = str(c.base_url).removesuffix("/v1/")

            async def load(wanted: tuple[int, int]) -> bool:
                return await load_of(url) == wanted

            await until(lambda: load((1, 0)))
            late = asyncio.create_task(one("late", 5))
            await until(lambda: load((1, 1)))
            await asyncio.gather(running, late, one("urgent", -5))
        return ended

    assert run(ask()) == ["running", "urgent", "late"]
    assert chat(body("t", priority="high"))[0] == 400


def test_the_openai_package_completes_bare_prompts_whole_and_streamed() -> None:
    async def ask() -> None:
        async with client() as c:
            whole = await c.completions.create(model="fake-1b", prompt="Where does it rise?", max_tokens=8)
            assert (whole.object, whole.model, whole.id[:5]) == ("text_completion", "fake-1b", "cmpl-")
            assert (whole.choices[0].text, whole.choices[0].finish_reason) == (
                'On "Where does it rise?": ' + whole.choices[0].text.partition('": ')[2],
                "length",
            )
            assert whole.usage
            assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (6, 8)
            chunks = [
                chunk
                async for chunk in await c.completions.create(
                    model="fake-1b",
                    prompt="Where does it rise?",
                    max_tokens=8,
                    stream=True,
                    stream_options={"include_usage": True},
                )
            ]
            assert "".join(chunk.choices[0].text for chunk in chunks[:-1]) == whole.choices[0].text
            assert len(chunks) == 8 + 2
            assert chunks[-1].usage
            assert chunks[-1].usage.completion_tokens == 8
            assert {chunk.model for chunk in chunks} == {"fake-1b"}

    run(ask())
    assert post("/v1/completions", json.dumps({"model": "fake-1b", "prompt": ["a", "b"]}).encode())[0] == 400
    assert post("/v1/completions", json.dumps({"model": "other", "prompt": "a"}).encode())[0] == 404
    assert post("/v1/completions", json.dumps({"model": "fake-1b", "prompt": "[fail:429]"}).encode())[0] == 429


def test_the_openai_package_gets_its_embeddings() -> None:
    async def ask() -> None:
        async with client() as c:
            found = await c.embeddings.create(model="fake-1b", input=["one", "two"], dimensions=8)
            assert (found.object, found.model, len(found.data)) == ("list", "fake-1b", 2)
            assert [len(entry.embedding) for entry in found.data] == [8, 8]
            assert found.usage.total_tokens == found.usage.prompt_tokens > 0
            again = await c.embeddings.create(model="fake-1b", input="two", dimensions=8, encoding_format="float")
            assert again.data[0].embedding == pytest.approx(found.data[1].embedding)

    run(ask())


def test_tokenize_answers_in_the_shape_of_vllm() -> None:
    def asked(**more: object) -> tuple[int, dict[str, Any]]:
        status, _, answer = post("/tokenize", json.dumps({"model": "fake-1b", **more}).encode())
        return status, json.loads(answer)

    status, answer = asked(prompt="Where does it rise?")
    assert (status, answer["count"], answer["max_model_len"]) == (200, 6, 131_072)
    assert len(answer["tokens"]) == 6
    assert asked(messages=[{"role": "user", "content": "Where does it rise?"}])[1]["count"] == 1 + 4 + 5
    assert asked()[0] == asked(messages=[])[0] == 400


def test_an_engine_without_metrics_has_no_such_page() -> None:
    async def ask(style: MetricsStyle) -> int:
        async with fake_engine(replace(QUICK, metrics_style=style)) as url:
            return (await request(f"{url}/metrics"))[0]

    assert run(ask(MetricsStyle.NONE)) == 404
    assert run(ask(MetricsStyle.LLAMA_CPP)) == 200


def logprobs_in(answer: bytes) -> list[dict[str, Any]]:
    """Return the logprobs of all tokens of an answer, streamed or not."""
    parts = re.findall(rb"\{.*\}", answer)
    told = [choice["logprobs"] for part in parts for choice in json.loads(part)["choices"] if choice["logprobs"]]
    return [token for each in told for token in each["content"]]


def test_logprobs_are_told_for_each_token_where_they_are_asked_for() -> None:
    task = "Choose.\nA. urgent\nB. lookup\nIt is a lookup. [tokens:3]"
    plain = chat(body(task))
    assert logprobs_in(plain[2]) == []
    for stream in (False, True):
        status, _, answer = chat(body(task, logprobs=True, top_logprobs=2, stream=stream))
        told = logprobs_in(answer)
        assert (status, len(told)) == (200, 3)
        assert told[0]["token"] == told[0]["top_logprobs"][0]["token"] == "B"
        assert [len(each["top_logprobs"]) for each in told] == [2, 2, 2]
        assert logprobs_in(chat(body(task + "[no-logprobs]", logprobs=True, stream=stream))[2]) == []
    assert chat(body(task, logprobs=True, top_logprobs=21))[0] == 400


def test_a_stream_sends_its_first_token_at_once_and_then_so_many_in_one_go() -> None:
    data = body("Tell me. [tokens:40]", stream=True)
    every = chat(data)[2]
    some = chat(data, replace(QUICK, stream_interval=16))[2]
    assert every.count(b'"content"') == some.count(b'"content"')
    assert some.count(b"\r\n") < every.count(b"\r\n") / 4
