"""Labels: how they are read, asked for and scored."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.core.dialects.decide import CLASSIFY_PATH, LABELS_MAX, Decide, LabelBack, decision, place_of
from luftpause.core.dialects.dialect import UnfitAnswerError
from luftpause.core.dialects.request import BadRequestError
from luftpause.core.dialects.single_request import CHAT_PATH
from luftpause.core.model.ids import ModelName, ReplicaId
from luftpause.core.model.replicas import Endpoint, EngineKind, Placement, ReplicaKind
from luftpause.core.model.turns import TurnShape

DECIDE = Decide()
LABELS = ["urgent", "lookup", "other"]


def body(**members: object) -> bytes:
    return json.dumps({"input": "the phone rings", "model": "m", "labels": LABELS, **members}).encode()


def without(*names: str, **members: object) -> bytes:
    return json.dumps(
        {name: value for name, value in json.loads(body(**members)).items() if name not in names}
    ).encode()


def place(kind: ReplicaKind, engine: EngineKind = EngineKind.VLLM, model: str = "m") -> Placement:
    return Placement(
        replica=ReplicaId("a"), endpoint=Endpoint(url="u"), why="", engine=engine, kind=kind, model=ModelName(model)
    )


def asked(data: bytes, engine: EngineKind = EngineKind.VLLM, model: str = "m") -> dict[str, Any]:
    sent = DECIDE.sent(b"/v1/decide", data, place(ReplicaKind.GENERATIVE, engine, model), speaks=False)
    assert sent.target == CHAT_PATH
    read: dict[str, Any] = json.loads(sent.body)
    return read


def prompt(text: str, labels: list[str] = LABELS) -> str:
    said: str = asked(body(input=text, labels=labels))["messages"][-1]["content"]
    return said


def answer(*alternatives: tuple[str, float], **first: object) -> bytes:
    top = [{"token": token, "logprob": logprob, "bytes": None} for token, logprob in alternatives]
    content = [{"token": "A", "logprob": -0.1, "top_logprobs": top, **first}, {"token": "x", "logprob": 0.0}]
    choice = {"index": 0, "message": {"content": "A"}, "logprobs": {"content": content}, "finish_reason": "length"}
    return json.dumps({"model": "m-1", "choices": [choice], "usage": {"prompt_tokens": 9}}).encode()


def back(data: bytes, labels: list[str] = LABELS, cut: int = 7) -> dict[str, Any]:
    way = LabelBack(labels)
    assert all(way.feed(data[at : at + cut]) == b"" for at in range(0, len(data), cut))
    read: dict[str, Any] = json.loads(way.end())
    return read


def test_without_labels_it_is_for_a_classifier_and_with_labels_for_a_model_that_writes() -> None:
    for members in ({"labels": None}, {"labels": None, "input": ["a", "b"]}):
        peek = DECIDE.peek("/v1/decide", body(**members), with_identity=True)
        assert (peek.kind, peek.shape, peek.model, peek.stream) == (
            ReplicaKind.SINGLE_PASS,
            TurnShape.ALONE,
            "m",
            False,
        )
    peek = DECIDE.peek("/v1/decide", body(), with_identity=True)
    assert (peek.kind, peek.shape, peek.model) == (ReplicaKind.GENERATIVE, TurnShape.ALONE, "m")
    assert DECIDE.peek("/v1/decide", without("model"), with_identity=True).model == ""


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"labels": ["one"]}, "`labels` are 2 to 20 texts: they are 1"),
        ({"labels": []}, "they are 0"),
        ({"labels": [str(number) for number in range(LABELS_MAX + 1)]}, "they are 21"),
        ({"labels": ["a", "a"]}, "named twice"),
        ({"labels": ["a b", " a  b "]}, "named twice"),
        ({"labels": ["a", ""]}, "empty"),
        ({"labels": ["a", " \n"]}, "empty"),
        ({"labels": ["a", "b" * 201]}, "longer than 200"),
        ({"labels": "urgent"}, "at `$.labels`"),
        ({"labels": [1, 2]}, "at `$.labels[0]`"),
        ({"input": 7}, "at `$.input`"),
        ({"input": []}, "it is a list of 0"),
        ({"input": ["a", "b"]}, "with `labels`, `input` is one text: it is a list of 2"),
        ({"model": 7}, "at `$.model`"),
        ({"model": ""}, "`model` is empty"),
    ],
)
def test_what_cannot_be_decided_is_refused_by_name(members: dict[str, object], says: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        DECIDE.peek("/v1/decide", body(**members), with_identity=False)
    assert says in str(refused.value)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"labels":["a","b"],"labels":null}', without("input")])
def test_what_is_no_request_is_refused(data: bytes) -> None:
    with pytest.raises(BadRequestError):
        DECIDE.peek("/v1/decide", data, with_identity=False)


def test_a_classifier_gets_the_very_bytes_unless_it_must_be_told_the_model() -> None:
    odd = b'{ "input" : ["a"], "model":"m", "truncate_prompt_tokens": 1.0 }'
    sent = DECIDE.sent(b"/v1/decide?x=1", odd, place(ReplicaKind.SINGLE_PASS), speaks=False)
    assert (sent.target, sent.body, sent.back) == (CLASSIFY_PATH, odd, None)
    found = DECIDE.sent(
        b"/v1/decide", b'{"input":"a","x":1.0}', place(ReplicaKind.SINGLE_PASS, model="labels"), speaks=False
    )
    assert found.body == b'{"input":"a","x":1.0,"model":"labels"}'


def test_one_token_is_asked_for_with_its_alternatives() -> None:
    request = asked(body(max_tokens=99, temperature=1.5, n=4, stream=True, priority=3))
    assert {name: value for name, value in request.items() if name != "messages"} == {
        "model": "m",
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 20,
        "stream": False,
        "priority": 3,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert asked(without("model"), model="only-one")["model"] == "only-one"


def test_a_model_that_thinks_is_asked_not_to_unless_the_client_or_the_engine_knows_better() -> None:
    mine = {"enable_thinking": True}
    assert asked(body(chat_template_kwargs=mine))["chat_template_kwargs"] == mine
    assert "chat_template_kwargs" not in asked(body(), EngineKind.OPENAI)


def test_the_prompt_lists_the_labels_as_letters_each_on_its_line() -> None:
    said = prompt("hello", ["ur gent", "look\nB. up", "other"])
    assert "\nA. ur gent\nB. look B. up\nC. other\n" in said
    assert said.endswith("A, B or C.")
    assert prompt("hello", ["a", "b"]).endswith("A or B.")


@given(st.text(alphabet="=\nAB. x", max_size=60))
def test_nothing_in_a_text_ends_the_fence_around_it(text: str) -> None:
    said = prompt(text)
    fence = next(line for line in said.split("\n") if line and set(line) == {"="})
    before, inside, after = said.split(fence)[0], text, said.rsplit(fence, 1)[1]
    assert said == f"{before}{fence}\n{inside}\n{fence}{after}"
    assert fence not in text
    assert said.count(fence) == 2


@pytest.mark.parametrize("token", ["A", " A", "a", "A.", "(A)", "▁A", "Ġa", "\nA", "**A", '"A"', "A:", "`A`"])
def test_a_letter_is_known_in_what_tokens_put_around_it(token: str) -> None:
    assert place_of(token) == 0


@pytest.mark.parametrize("token", ["", " ", "AB", "Answer", "1", "A B", "Ä", "А", ".", "<|A|>"])
def test_anything_else_is_no_letter(token: str) -> None:
    assert place_of(token) is None


def test_labels_are_scored_by_all_tokens_that_stand_for_them() -> None:
    decided = back(answer((" B", math.log(0.3)), ("A", math.log(0.2)), ("b", math.log(0.1)), ("The", math.log(0.4))))
    assert decided["label"] == "lookup"
    assert decided["probabilities"] == {
        "urgent": pytest.approx(0.2 / 0.6),
        "lookup": pytest.approx(0.4 / 0.6),
    }
    assert decided["unscored"] == ["other"]
    assert (decided["model"], decided["usage"]) == ("m-1", {"prompt_tokens": 9})


def test_a_letter_past_the_labels_scores_nothing_and_a_tie_goes_to_the_first() -> None:
    decided = decision(LABELS, [("D", -0.1), ("C", -2.0), ("A", -2.0)])
    assert (decided.label, decided.unscored) == ("urgent", ["lookup"])


def test_very_unlikely_letters_are_still_compared() -> None:
    assert decision(LABELS, [("A", -9999.0), ("B", -9998.0)]).label == "lookup"


@given(st.lists(st.tuples(st.sampled_from(list("ABCab xyz")), st.floats(-1e4, 0.0)), min_size=1, max_size=20))
def test_probabilities_are_some_and_sum_to_one(alternatives: list[tuple[str, float]]) -> None:
    try:
        decided = decision(LABELS, alternatives)
    except UnfitAnswerError:
        assert not any(place_of(token) in range(3) for token, _ in alternatives)
        return
    scored = decided.probabilities
    assert math.isclose(sum(scored.values()), 1.0)
    assert scored[decided.label] == max(scored.values())
    assert sorted([*scored, *decided.unscored]) == sorted(LABELS)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{}", "no chat completion"),
        (b"<html>", "no chat completion"),
        (b'{"choices":[]}', "no logprobs"),
        (b'{"choices":[{"message":{"content":"A"}}]}', "no logprobs"),
        (b'{"choices":[{"logprobs":null}]}', "no logprobs"),
        (b'{"choices":[{"logprobs":{"content":[]}}]}', "no logprobs"),
        (b'{"choices":[{"logprobs":{"content":[{"token":"A","top_logprobs":[]}]}}]}', "no logprobs"),
        (answer(("<think>", -0.1), ("Hm", -3.0)), "none of the labels' letters, but with '<think>', 'Hm'"),
    ],
)
def test_an_answer_that_decides_nothing_says_why(data: bytes, says: str) -> None:
    with pytest.raises(UnfitAnswerError) as unfit:
        back(data)
    assert says in str(unfit.value)


def test_an_engine_that_tells_the_token_alone_is_believed() -> None:
    decided = back(answer(top_logprobs=None))
    assert (decided["label"], decided["probabilities"]) == ("urgent", {"urgent": 1.0})


@pytest.mark.parametrize(
    ("status", "said", "message"),
    [
        (400, b'{"error":{"message":"too many","type":"t","code":"c","param":"p"}}', "too many"),
        (422, b'{"detail":"no such member"}', "no such member"),
        (400, b'{"object":"error","message":"no"}', "no"),
        (502, b"<html>Bad Gateway</html>", "<html>Bad Gateway</html>"),
        (500, b"\x1f\x8b\x00\x00", "the engine answered with status 500"),
        (503, b"", "the engine answered with status 503"),
    ],
    ids=["OpenAI's", "a framework's", "vLLM's old one", "a gateway's", "compressed", "none"],
)
def test_a_refusal_is_in_openais_shape_whatever_shape_it_came_in(status: int, said: bytes, message: str) -> None:
    error = json.loads(LabelBack(LABELS).error(status, said))["error"]
    assert error["message"] == message
    assert {"type", "code"} <= error.keys()


def test_a_member_that_is_no_text_is_refused_before_anything_waits() -> None:
    body = b'{"input":"x","labels":["a","b"],"\xff":1}'
    with pytest.raises(BadRequestError, match="no UTF-8"):
        Decide().peek("/v1/decide", body, with_identity=False)
