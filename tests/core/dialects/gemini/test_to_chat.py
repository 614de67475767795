import json

import pytest

from core.dialects.gemini.exchanges import EVENTS, STREAM_PATH, Object, said, written
from luftpause.core.dialects.request import BadRequestError


def configured(**config: object) -> Object:
    chat = said(generationConfig=config)
    assert chat.pop("messages") == [{"role": "user", "content": "hi"}]
    assert chat.pop("model") == "m"
    return chat


def test_a_stream_is_asked_for_with_its_usage() -> None:
    chat = json.loads(EVENTS.translate(STREAM_PATH, written()).request)
    assert (chat["stream"], chat["stream_options"]) == (True, {"include_usage": True})


def test_sampling() -> None:
    assert configured(
        maxOutputTokens=9,
        temperature=0.5,
        topP=0.9,
        topK=40.0,
        seed=1,
        presencePenalty=0.1,
        frequency_penalty=0.2,
        stopSequences=["x"],
        candidateCount=1,
        speechConfig={},
    ) == {
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "seed": 1,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "stop": ["x"],
    }
    assert configured(stopSequences=[], responseModalities=["TEXT"], responseMimeType="text/plain") == {}


@pytest.mark.parametrize(
    ("thinking", "members"),
    [
        ({"thinkingBudget": 0}, {"chat_template_kwargs": {"enable_thinking": False}}),
        ({"thinkingBudget": -1, "includeThoughts": True}, {}),
        ({"thinkingBudget": 512}, {}),
        ({"thinkingLevel": "MINIMAL"}, {"reasoning_effort": "low"}),
        ({"thinkingLevel": "high"}, {"reasoning_effort": "high"}),
        ({"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}, {}),
    ],
)
def test_thinking(thinking: Object, members: Object) -> None:
    assert configured(thinkingConfig=thinking) == members


@pytest.mark.parametrize(
    ("config", "schema"),
    [
        ({"responseSchema": {"type": "STRING"}}, {"type": "string"}),
        ({"responseMimeType": "application/json", "responseJsonSchema": {"type": "STRING"}}, {"type": "STRING"}),
        (
            {"response_schema": {"type": "OBJECT", "properties": {"a_b": {}}}},
            {"type": "object", "properties": {"a_b": {}}},
        ),
    ],
)
def test_the_form_of_the_answer(config: Object, schema: Object) -> None:
    wanted = {"name": "answer", "schema": schema, "strict": True}
    assert configured(**config) == {"response_format": {"type": "json_schema", "json_schema": wanted}}


def test_any_json() -> None:
    assert configured(responseMimeType="application/json") == {"response_format": {"type": "json_object"}}


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({"candidateCount": 2}, "`candidateCount` is 2"),
        ({"responseLogprobs": True}, "log probabilities"),
        ({"logprobs": 3}, "log probabilities"),
        ({"responseModalities": ["TEXT", "IMAGE"]}, "the modality 'IMAGE'"),
        ({"responseMimeType": "text/x.enum"}, "an answer of the type 'text/x.enum'"),
    ],
)
def test_what_cannot_be_had_is_refused(config: Object, what: str) -> None:
    with pytest.raises(BadRequestError, match=what):
        configured(**config)


def test_kept_state_is_refused() -> None:
    with pytest.raises(BadRequestError, match="`cachedContent` cannot be used here"):
        said(cachedContent="cachedContents/x")


def test_what_only_google_could_use_is_left_out() -> None:
    assert said(safetySettings=[{"category": "X"}], labels={"a": "b"}, serviceTier="x", model="other") == said()


def test_a_request_that_says_nothing_is_refused() -> None:
    with pytest.raises(BadRequestError, match="`contents` is empty"):
        EVENTS.translate(STREAM_PATH, b"{}")
