"""A second reader of Gemini streams, kept without the product's code: it says whether one is a legal sequence."""

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Told:
    """What a legal stream told."""

    text: str = ""
    thoughts: str = ""
    calls: list[tuple[str, str, object]] = field(default_factory=list)
    finish: str = ""
    usage: dict[str, int] | None = None
    error: str = ""


def told_by_events(stream: bytes) -> Told:
    """Return what a stream of events tells; an illegal one fails an assertion."""
    documents = []
    assert stream.endswith(b"\n\n")
    for event in stream.decode().split("\n\n")[:-1]:
        event = event.lstrip("\n")
        if not event:
            continue  # blank lines, which say nothing
        assert "\n" not in event
        documents.append(json.loads(event.removeprefix("data: ")))
        assert event.startswith("data: ") == ("error" not in documents[-1]), "an error stands there bare"
    return told_by(documents)


def told_by_array(stream: bytes) -> Told:
    """Return what a stream tells that is one array."""
    return told_by(json.loads(stream))


def told_by(documents: list[dict[str, Any]]) -> Told:
    """Return what documents tell, the last of which must end the answer and no other."""
    told = Told()
    assert documents
    for document in documents:
        assert not told.finish, "nothing follows the end"
        assert not told.error, "nothing follows an error"
        if "error" in document:
            assert set(document) == {"error"}
            told.error = document["error"]["message"]
            continue
        (candidate,) = document["candidates"]
        assert candidate["index"] == 0
        assert candidate["content"]["role"] == "model"
        assert candidate["content"]["parts"], "clients take content without parts for a fault"
        for part in candidate["content"]["parts"]:
            _take(told, part)
        told.finish = candidate.get("finishReason", "")
        assert ("usageMetadata" in document) <= bool(told.finish)
        told.usage = document.get("usageMetadata")
    assert told.finish or told.error, "no end"
    return told


def _take(told: Told, part: dict[str, Any]) -> None:
    if "functionCall" in part:
        called = part["functionCall"]
        assert called["id"]
        assert isinstance(called["args"], dict)
        told.calls.append((called["id"], called["name"], called["args"]))
    elif part.get("thought"):
        told.thoughts += part["text"]
    else:
        told.text += part["text"]
