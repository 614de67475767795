"""Whatever a client asks and an engine answers: no exception but the declared ones, and no stream that is illegal.

Sans-IO; at sockets the same mutants go through `services/dataplane/test_door_fuzz.py`. A failure names its seed:
`random.Random("NAME/NUMBER")`.
"""

import json
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import msgspec
import pytest

from core.dialects.anthropic_messages import legal as messages_legal
from core.dialects.gemini import legal as gemini_legal
from core.dialects.mutants import cut, mutated, mutated_stream, read, scratched
from core.dialects.openai_responses.exchanges import events_of
from core.dialects.openai_responses.legality import check_stream
from luftpause.core.dialects.answer_text import AnswerText
from luftpause.core.dialects.anthropic_messages.count_tokens import CountTokens
from luftpause.core.dialects.anthropic_messages.dialect import AnthropicMessages
from luftpause.core.dialects.chat_assembly import ChatAssembly, CompletionAssembly
from luftpause.core.dialects.decide import Decide
from luftpause.core.dialects.dialect import Dialect, TranslatedDialect, UnfitAnswerError, WayBack
from luftpause.core.dialects.gemini.count_tokens import GeminiCountTokens
from luftpause.core.dialects.gemini.dialect import Gemini
from luftpause.core.dialects.observe import Observed
from luftpause.core.dialects.openai_chat import OpenAiChat
from luftpause.core.dialects.openai_responses.dialect import OpenAiResponses
from luftpause.core.dialects.pass_through import PassThrough
from luftpause.core.dialects.request import BadRequestError
from luftpause.core.dialects.said import marks_of_answer, said_in
from luftpause.core.dialects.single_request import SingleRequest
from luftpause.core.dialects.ways_back import PiecedTranslation
from luftpause.core.model.ids import ModelName, ReplicaId
from luftpause.core.model.replicas import Endpoint, EngineKind, Placement, ReplicaKind
from luftpause.core.model.turns import TurnShape

CHAT, MESSAGES, RESPONSES, EVENTS, ARRAY = (
    OpenAiChat(),
    AnthropicMessages(),
    OpenAiResponses(),
    Gemini(events=True),
    Gemini(events=False),
)
CHAT_REQUESTS = read("*/golden/*.chat.json")
MESSAGES_REQUESTS = read("anthropic_messages/golden/*.request.json")
RESPONSES_REQUESTS = read("openai_responses/golden/*.request.json")
GEMINI_REQUESTS = read("gemini/golden/*.request.json")
DECISIONS = [
    b'{"model":"m","input":"it rings","labels":["urgent","lookup"],"chat_template_kwargs":{"x":1}}',
    b'{"input":["a","b"],"model":"m"}',
    b'{"messages":[{"role":"user","content":"hi"}],"labels":["a","b","c"]}',
]
CHAT_STREAMS = read(
    "anthropic_messages/golden/chat_*.sse",
    "openai_responses/golden/codex_*.answer.sse",
    "openai_responses/golden/llama_*.answer.sse",
)
CHAT_ANSWERS = read("anthropic_messages/golden/chat_*[a-z].json", "openai_responses/golden/llama_*_whole.answer.json")
MESSAGES_STREAMS = read("anthropic_messages/golden/native_*.sse")
MESSAGES_ANSWERS = read("anthropic_messages/golden/native_*.json")
RESPONSES_STREAMS = read("openai_responses/golden/native_*.answer.sse", "openai_responses/golden/*.response.sse")
RESPONSES_ANSWERS = read(
    "openai_responses/golden/native_*_whole.answer.json", "openai_responses/golden/*.response.json"
)
STREAMS = [*CHAT_STREAMS, *MESSAGES_STREAMS, *RESPONSES_STREAMS]
COMPLETION = (
    b'data: {"choices":[{"index":0,"text":"x","logprobs":{"tokens":["x"]},"finish_reason":"stop"}],"usage":{}}\n\n'
)
SCORED = b'{"token":"A","logprob":-1,"top_logprobs":[{"token":"B","logprob":-2}]}'
DECIDED = b'{"model":"m","choices":[{"message":{},"logprobs":{"content":[%b]}}],"usage":{"prompt_tokens":1}}' % SCORED

NIGHTLY = pytest.mark.nightly


def counts(short: int) -> pytest.MarkDecorator:
    """Run so many, or ten times as many at night."""
    return pytest.mark.parametrize(
        "count", [pytest.param(short, id="short"), pytest.param(10 * short, id="long", marks=NIGHTLY)]
    )


def each(name: str, count: int, test: Callable[[random.Random], None]) -> None:
    """Run a test with one seed after another; a failure names its seed."""
    for number in range(count):
        try:
            test(random.Random(f"{name}/{number}"))
        except BaseException as error:
            error.add_note(f'seed: random.Random("{name}/{number}")')
            raise


@dataclass(frozen=True)
class Asking:
    """Requests of a dialect, and the paths that they are sent to."""

    dialect: Dialect
    paths: tuple[str, ...]
    samples: list[bytes]


ASKINGS = {
    "chat": Asking(CHAT, ("/v1/chat/completions",), CHAT_REQUESTS),
    "messages": Asking(MESSAGES, ("/v1/messages",), MESSAGES_REQUESTS),
    "responses": Asking(RESPONSES, ("/v1/responses",), RESPONSES_REQUESTS),
    "gemini": Asking(
        EVENTS, ("/v1beta/models/m:streamGenerateContent", "/v1/models/a/b:8b:generateContent"), GEMINI_REQUESTS
    ),
    "gemini-array": Asking(ARRAY, ("/v1beta/models/m:streamGenerateContent",), GEMINI_REQUESTS),
    "gemini-count": Asking(GeminiCountTokens(), ("/v1beta/models/m:countTokens",), GEMINI_REQUESTS),
    "messages-count": Asking(CountTokens(), ("/v1/messages/count_tokens",), MESSAGES_REQUESTS),
    "decide": Asking(Decide(), ("/v1/decide",), DECISIONS),
    "completions": Asking(
        PassThrough("completions", kind=ReplicaKind.GENERATIVE, shape=TurnShape.ALONE, needs_model=True),
        ("/v1/completions",),
        [b'{"model":"m","prompt":"x","n":1}'],
    ),
}
OTHERS = [*CHAT_REQUESTS, *MESSAGES_REQUESTS, *RESPONSES_REQUESTS, *GEMINI_REQUESTS]


@counts(600)
@pytest.mark.parametrize("name", ASKINGS)
def test_a_request_is_read_or_refused(name: str, count: int) -> None:
    asking = ASKINGS[name]

    def test(rng: random.Random) -> None:
        body, path = mutated(rng, rng.choice(asking.samples), OTHERS), rng.choice(asking.paths)
        with suppress(BadRequestError):
            found = asking.dialect.peek(path, body, with_identity=rng.random() < 0.7)
            said = said_in(asking.dialect.conversation(body), "caller\0m")
            assert all(len(mark) == 34 for mark in said.marks)
            assert isinstance(found.model, str)
            _send_on(rng, asking.dialect, path, body)

    each(f"request/{name}", count, test)


def _send_on(rng: random.Random, dialect: Dialect, path: str, body: bytes) -> None:
    """Say a request in other words, where its dialect can, and see that an engine could read them."""
    if isinstance(dialect, SingleRequest):
        place = Placement(
            replica=ReplicaId("a"),
            endpoint=Endpoint(url="u"),
            why="",
            engine=rng.choice(list(EngineKind)),
            kind=rng.choice(list(ReplicaKind)),
            model=ModelName("m"),
        )
        sent = dialect.sent(path.encode(), body, place, speaks=rng.random() < 0.2)
        request, back = sent.body, sent.back
        if back is None:
            return
        _answer_whole(rng, back, rng.choice((DECIDED, *CHAT_ANSWERS)))
    elif dialect is CHAT:
        return
    else:
        translation = cast("TranslatedDialect", dialect).translate(path, body, "t.1")
        request = translation.request
        _answer(rng, translation, rng.choice(CHAT_STREAMS), [])
    assert isinstance(
        json.loads(request.decode("utf-8", "replace")), dict
    )  # what is no UTF-8 is for the engine to judge


def _answer(rng: random.Random, back: WayBack, stream: bytes, said: list[bytes]) -> None:
    """Give a stream to a way back, however that takes it."""
    with suppress(UnfitAnswerError):
        said += [*[back.feed(piece) for piece in cut(rng, stream)], back.end()]
    ids = back.call_ids()
    assert len(set(ids)) == len(ids)
    assert isinstance(msgspec.json.decode(back.error(rng.choice((400, 429, 500)), scratched(rng, stream[:200]))), dict)


def _answer_whole(rng: random.Random, back: WayBack, body: bytes) -> None:
    with suppress(UnfitAnswerError):
        said = [*[back.feed(piece) for piece in cut(rng, body)], back.end()]
        msgspec.json.decode(b"".join(said))
    back.call_ids()


@dataclass(frozen=True)
class Telling:
    """A translated dialect: requests for a stream and for none, and what says whether a stream is legal."""

    dialect: TranslatedDialect
    stream: tuple[str, bytes]
    whole: tuple[str, bytes]
    check: Callable[[bytes], object]


def _check_responses(stream: bytes) -> None:
    check_stream(events_of(stream))


SEARCH = b'{"type":"tool_search","execution":"client"}'
TOOLS = b'"tools":[{"type":"custom","name":"patch"},{"type":"function","name":"look"},%b]' % SEARCH
HI = b'"messages":[{"role":"user","content":"hi"}],"max_tokens":9,"stop_sequences":["thr"],"thinking":{"type":"%b"}'
GEMINI = b'{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}'
GEMINI_PATHS = "/v1beta/models/m:streamGenerateContent", "/v1beta/models/m:generateContent"
TELLINGS = {
    "messages": Telling(
        MESSAGES,
        ("", b'{"model":"m","stream":true,%b}' % (HI % b"adaptive")),
        ("", b'{"model":"m",%b}' % (HI % b"disabled")),
        messages_legal.told_by,
    ),
    "responses": Telling(
        RESPONSES,
        ("", b'{"model":"m","input":"hi","stream":true,%b}' % TOOLS),
        ("", b'{"model":"m","input":"hi",%b}' % TOOLS),
        _check_responses,
    ),
    "gemini": Telling(EVENTS, (GEMINI_PATHS[0], GEMINI), (GEMINI_PATHS[1], GEMINI), gemini_legal.told_by_events),
    "gemini-array": Telling(ARRAY, (GEMINI_PATHS[0], GEMINI), (GEMINI_PATHS[1], GEMINI), gemini_legal.told_by_array),
}


@counts(700)
@pytest.mark.parametrize("name", TELLINGS)
def test_whatever_an_engine_streams_becomes_a_legal_stream(name: str, count: int) -> None:
    telling = TELLINGS[name]

    def test(rng: random.Random) -> None:
        said: list[bytes] = []
        translation = telling.dialect.translate(*telling.stream, "t.1")
        _answer(rng, translation, mutated_stream(rng, rng.choice(CHAT_STREAMS), STREAMS), said)
        telling.check(b"".join(said))

    each(f"stream/{name}", count, test)


@counts(300)
@pytest.mark.parametrize("name", TELLINGS)
def test_whatever_an_engine_answers_becomes_an_answer_or_is_unfit(name: str, count: int) -> None:
    telling = TELLINGS[name]

    def test(rng: random.Random) -> None:
        whole = mutated(rng, rng.choice(CHAT_ANSWERS), CHAT_ANSWERS)
        _answer_whole(rng, telling.dialect.translate(*telling.whole, "t.1"), whole)
        assembly, translation = ChatAssembly(), telling.dialect.translate(*telling.whole, "t.2")
        with suppress(UnfitAnswerError):
            for piece in cut(rng, mutated_stream(rng, rng.choice(CHAT_STREAMS), STREAMS)):
                assembly.feed(piece)
            translation.feed(assembly.end())
            msgspec.json.decode(translation.end())
        assembly.call_ids()
        said: list[bytes] = []
        _answer(rng, PiecedTranslation(telling.dialect.translate(*telling.stream, "t.3")), whole, said)
        if said:
            telling.check(b"".join(said))

    each(f"whole/{name}", count, test)


@counts(600)
def test_whatever_streams_is_put_together_or_unfit(count: int) -> None:
    def test(rng: random.Random) -> None:
        for back, samples in ((ChatAssembly(), CHAT_STREAMS), (CompletionAssembly(), [COMPLETION])):
            with suppress(UnfitAnswerError):
                for piece in cut(rng, mutated_stream(rng, rng.choice(samples), STREAMS)):
                    assert back.feed(piece) == b""
                assert isinstance(json.loads(back.end()), dict)
            back.call_ids()
        pieced, assembly = PiecedTranslation(None), ChatAssembly()
        pieced.feed(mutated(rng, rng.choice(CHAT_ANSWERS), CHAT_ANSWERS))
        with suppress(UnfitAnswerError):
            assembly.feed(pieced.end())
            assert isinstance(json.loads(assembly.end()), dict)

    each("assembly", count, test)


LOOKED_AT: dict[str, tuple[Dialect, list[bytes], list[bytes]]] = {
    "chat": (CHAT, CHAT_STREAMS, CHAT_ANSWERS),
    "messages": (MESSAGES, MESSAGES_STREAMS, MESSAGES_ANSWERS),
    "responses": (RESPONSES, RESPONSES_STREAMS, RESPONSES_ANSWERS),
}


@counts(700)
@pytest.mark.parametrize("name", LOOKED_AT)
def test_whatever_passes_is_looked_at_alike_at_every_cut(name: str, count: int) -> None:
    dialect, streams, answers = LOOKED_AT[name]

    def look(pieces: Sequence[bytes], *, stream: bool) -> tuple[Observed, str | None]:
        observer, text = dialect.observer(stream=stream), AnswerText(dialect.text_in, stream=stream)
        for piece in pieces:
            observer.feed(piece)
            text.feed(piece)
        seen = observer.observed()
        marks_of_answer(said_in(()), text.text(), has_calls=bool(seen.tool_calls))
        return seen, text.text()

    def test(rng: random.Random) -> None:
        stream = rng.random() < 0.8
        data = (
            mutated_stream(rng, rng.choice(streams), STREAMS) if stream else mutated(rng, rng.choice(answers), answers)
        )
        assert look(cut(rng, data), stream=stream) == look([data], stream=stream)

    each(f"observe/{name}", count, test)
