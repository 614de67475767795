"""What comes back is read by the official client, over a transport that is the translation itself."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import anthropic
import httpx2
import pytest
from anthropic.types import TextBlock, ThinkingBlock, ToolParam, ToolUseBlock

from core.dialects.anthropic_messages.requests import MESSAGES
from luftpause.core.dialects.failures import Failure, FailureCode

GOLDEN = Path(__file__).parent / "golden"
WEATHER: ToolParam = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
Client = Callable[[bytes], anthropic.Anthropic]


@pytest.fixture
def engine() -> Iterator[Client]:
    """Return a way to have a client whose engine answers with these bytes of Chat Completions."""
    clients: list[anthropic.Anthropic] = []

    def client(answer: bytes) -> anthropic.Anthropic:
        def serve(request: httpx2.Request) -> httpx2.Response:
            way = MESSAGES.translate(request.url.path, request.read())
            kind = "text/event-stream" if json.loads(request.read()).get("stream") else "application/json"
            pieces = [way.feed(answer[at : at + 37]) for at in range(0, len(answer), 37)]
            return httpx2.Response(200, headers={"content-type": kind}, content=b"".join([*pieces, way.end()]))

        clients.append(connected(serve))
        return clients[-1]

    yield client
    for each in clients:
        each.close()


def connected(serve: Callable[[httpx2.Request], httpx2.Response]) -> anthropic.Anthropic:
    transport = httpx2.Client(transport=httpx2.MockTransport(serve))
    return anthropic.Anthropic(api_key="unused", base_url="http://door.example", max_retries=0, http_client=transport)


def test_a_streamed_tool_call(engine: Client) -> None:
    client = engine((GOLDEN / "chat_tool.sse").read_bytes())
    with client.messages.stream(
        model="smollm2", max_tokens=64, messages=[{"role": "user", "content": "Weather in Bern?"}], tools=[WEATHER]
    ) as stream:
        message = stream.get_final_message()

    (block,) = message.content
    assert isinstance(block, ToolUseBlock)
    assert (block.name, block.input, message.stop_reason) == ("weather", {"city": "Bern"}, "tool_use")
    assert message.usage.cache_read_input_tokens is not None
    assert message.usage.input_tokens + message.usage.cache_read_input_tokens == 425
    assert message.usage.output_tokens == 29


def test_streamed_text_comes_piece_by_piece(engine: Client) -> None:
    client = engine((GOLDEN / "chat_text.sse").read_bytes())
    with client.messages.stream(
        model="smollm2", max_tokens=12, messages=[{"role": "user", "content": "Say hello."}]
    ) as stream:
        pieces = list(stream.text_stream)
        message = stream.get_final_message()

    assert len(pieces) == 12
    (block,) = message.content
    assert isinstance(block, TextBlock)
    assert block.text == "".join(pieces)
    assert message.stop_reason == "max_tokens"


def test_thinking_and_parallel_calls_stream(engine: Client) -> None:
    deltas: list[dict[str, object]] = [
        {"reasoning_content": "two "},
        {"reasoning_content": "cities"},
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "weather", "arguments": ""}}]},
        {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "weather", "arguments": '{"city":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"city":"Bern"}'}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": '"Rome"}'}}]},
    ]
    chunks = [{"id": "c", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    answer = b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"
    with engine(answer).messages.stream(
        model="m",
        max_tokens=2048,
        messages=[{"role": "user", "content": "Weather in Bern and Rome?"}],
        tools=[WEATHER],
        thinking={"type": "enabled", "budget_tokens": 1024},
    ) as stream:
        thought, *calls = stream.get_final_message().content

    assert isinstance(thought, ThinkingBlock)
    assert thought.thinking == "two cities"
    assert [call.input for call in calls if isinstance(call, ToolUseBlock)] == [{"city": "Bern"}, {"city": "Rome"}]


def test_a_whole_message(engine: Client) -> None:
    message = engine((GOLDEN / "chat_tool.json").read_bytes()).messages.create(
        model="smollm2", max_tokens=64, messages=[{"role": "user", "content": "Weather in Bern?"}], tools=[WEATHER]
    )

    (block,) = message.content
    assert isinstance(block, ToolUseBlock)
    assert block.input == {"city": "Bern"}
    assert message.id.startswith("msg_")


def test_a_failure_in_mid_stream_is_raised(engine: Client) -> None:
    answer = (
        b'data: {"id":"c","choices":[{"delta":{"content":"a"}}]}\n\ndata: {"error":{"message":"out of memory"}}\n\n'
    )
    with (
        engine(answer).messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as stream,
        pytest.raises(anthropic.APIStatusError, match="out of memory"),
    ):
        stream.get_final_message()


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (FailureCode.BAD_REQUEST, anthropic.BadRequestError),
        (FailureCode.UNAUTHORIZED, anthropic.AuthenticationError),
        (FailureCode.UNKNOWN_MODEL, anthropic.NotFoundError),
        (FailureCode.BODY_TOO_LARGE, anthropic.RequestTooLargeError),
        (FailureCode.EXPIRED, anthropic.ServiceUnavailableError),
        (FailureCode.INTERNAL, anthropic.InternalServerError),
    ],
)
def test_our_failures_are_raised(code: FailureCode, error: type[anthropic.APIStatusError]) -> None:
    failure = Failure(code=code, message="why not")
    client = connected(lambda _: httpx2.Response(failure.status, content=MESSAGES.error(failure)))
    with client, pytest.raises(error, match="why not") as raised:
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])

    body = raised.value.body
    assert isinstance(body, dict)
    assert body["error"]["code"] == code.value


def test_a_count_of_tokens() -> None:
    client = connected(lambda _: httpx2.Response(200, content=b'{"input_tokens":37}'))
    with client:
        assert client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "hi"}]).input_tokens == 37
