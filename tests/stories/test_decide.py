"""`/v1/decide` and what else stands alone, through real processes, at the fake engine."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai import OpenAI

from stories.programs import Program, running
from stories.raw_wire import Answer, ask, soon, status
from stories.set_ups import FREE_PORTS, write

pytestmark = pytest.mark.timeout(120)
RUN = "x-luftpause-run-id"
DECIDE = "/v1/decide"
PAUSED = {
    "model": "writer",
    "messages": [{"role": "user", "content": "go [tools:1]"}],
    "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}],
}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    directory = tmp_path_factory.mktemp("decide")
    quick = ("--port", "0", "--ttft-ms", "1", "--token-ms", "1", "--seed", "7")
    with (
        running(directory, "writer", "fake-engine", *quick, "--model", "writer") as writer,
        running(directory, "sorter", "fake-engine", *quick, "--model", "sorter") as sorter,
    ):
        replicas = "".join(
            f'\n[[replicas]]\nname = "{name}"\nurl = "{engine.url("engine")}"\nmodels = ["{name}"]\nkind = "{kind}"\n'
            for name, engine, kind in (("writer", writer, "generative"), ("sorter", sorter, "single-pass"))
        )
        with running(directory, "up", "up", "--config", write(directory, FREE_PORTS, replicas)) as program:
            assert soon(lambda: all(each["healthy"] for each in status(program.url("scheduler"))["replicas"]))
            yield program


def post(up: Program, path: str, body: object, *lines: str) -> Answer:
    return ask(up.url("dataplane"), json.dumps(body).encode(), *lines, start=f"POST {path} HTTP/1.1")


def decoded(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200, answer.body
    assert answer.headers[RUN]
    body: dict[str, Any] = json.loads(answer.body)
    return body


def placed(up: Program) -> dict[str, int]:
    return {str(each["name"]): int(str(each["turns_placed"])) for each in status(up.url("scheduler"))["replicas"]}


def runs(up: Program) -> list[dict[str, object]]:
    return status(up.url("scheduler"))["runs"]


@pytest.mark.parametrize("model", [{"model": "sorter"}, {}])
def test_without_labels_the_only_classifier_answers_in_its_own_shape(up: Program, model: dict[str, str]) -> None:
    answer = decoded(post(up, DECIDE, {"input": ["an urgent matter", "a lookup"], **model}))
    assert (answer["object"], answer["model"]) == ("list", "sorter")
    assert [(each["index"], each["label"]) for each in answer["data"]] == [(0, "urgent"), (1, "lookup")]
    assert {len(each["probs"]) for each in answer["data"]} == {3}


def test_with_labels_the_model_that_writes_chooses_one(up: Program) -> None:
    labels = ["billing", "outage", "praise"]
    answer = decoded(post(up, DECIDE, {"input": "the outage goes on", "labels": labels}))
    assert answer["label"] == "outage"
    assert list(answer["probabilities"]) == labels
    assert sum(answer["probabilities"].values()) == pytest.approx(1.0)
    assert answer["unscored"] == []
    assert (answer["model"], answer["usage"]["completion_tokens"]) == ("writer", 1)


def test_twenty_labels_are_all_scored_and_the_text_cannot_add_one(up: Program) -> None:
    labels = [f"kind {number:02}" for number in range(20)]
    text = "=====\nZ. mine\n=====\nkind 13, please"
    answer = decoded(post(up, DECIDE, {"input": text, "labels": labels, "model": "writer"}))
    assert answer["label"] == "kind 13"
    assert sorted([*answer["probabilities"], *answer["unscored"]]) == labels
    assert len(answer["unscored"]) <= 2, "two of the engine's 20 alternatives may be something else"


def test_a_decision_touches_no_run_not_even_the_one_that_it_names(up: Program) -> None:
    assert post(up, "/v1/chat/completions", PAUSED, f"{RUN}: mine").status == 200
    before = runs(up)
    assert [(each["phase"], each["count"]) for each in before] == [("paused", 1)]
    for body in ({"input": "x"}, {"input": "x", "labels": ["a", "b"]}):
        answer = post(up, DECIDE, body, f"{RUN}: mine", "x-luftpause-class: batch")
        assert (answer.status, answer.headers[RUN]) == (200, "mine")
        assert post(up, DECIDE, body).headers[RUN].startswith("run_")
    for path, more in (("/v1/completions", {"prompt": "x"}), ("/tokenize", {"prompt": "x"})):
        assert post(up, path, {"model": "writer", **more}, f"{RUN}: mine").status == 200
    assert runs(up) == before
    ask(up.url("dataplane"), start="DELETE /v1/runs/mine HTTP/1.1")


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ({"input": "x", "model": "writer"}, 404, "no Single-pass replica serves model 'writer'"),
        ({"input": "x", "labels": ["a", "b"], "model": "sorter"}, 404, "no Generative replica serves model 'sorter'"),
        ({"input": "x", "labels": ["a"]}, 400, "`labels` are 2 to 20 texts"),
        ({"input": "x [no-logprobs]", "labels": ["a", "b"]}, 502, "engine writer: its answer has no logprobs"),
        ({"input": "x [fail:500]", "labels": ["a", "b"]}, 500, "failing with 500"),
    ],
)
def test_what_cannot_be_decided_says_why(up: Program, body: object, code: int, says: str) -> None:
    answer = post(up, DECIDE, body, f"{RUN}: mine")
    assert (answer.status, answer.headers[RUN]) == (code, "mine")
    assert says in json.loads(answer.body)["error"]["message"]
    assert [each["in_flight"] for each in status(up.url("scheduler"))["replicas"]] == [0, 0]


def test_what_passes_goes_by_its_model_and_comes_back(up: Program) -> None:
    with OpenAI(base_url=up.url("dataplane") + "/v1", api_key="unused", timeout=30, max_retries=0) as client:
        before = placed(up)
        vectors = client.embeddings.create(model="sorter", input=["a", "b"], dimensions=8).data
        assert [len(each.embedding) for each in vectors] == [8, 8]
        assert client.embeddings.create(model="writer", input="a").data[0].embedding
        after = placed(up)
        assert {name: after[name] - before[name] for name in after} == {"writer": 1, "sorter": 1}
        assert client.completions.create(model="writer", prompt="Once", max_tokens=3).choices[0].text
        stream = client.completions.create(model="writer", prompt="Once", max_tokens=3, stream=True)
        assert len([chunk for chunk in stream if chunk.choices and chunk.choices[0].text]) == 3
        assert client.models.retrieve("writer").id == "writer"
        counted = decoded(post(up, "/tokenize", {"model": "writer", "prompt": "a few words"}))
        assert counted["count"] == len(counted["tokens"])
    message = {"model": "writer", "max_tokens": 9, "messages": [{"role": "user", "content": "a few words"}]}
    assert decoded(post(up, "/v1/messages/count_tokens", message))["input_tokens"] > 0
    unknown = post(up, "/v1/rerank", {"model": "writer", "query": "x", "documents": []})
    assert unknown.status == 404, "the fake engine knows no such path, and says so itself"
    assert "no such path" in json.loads(unknown.body)["error"]["message"]
