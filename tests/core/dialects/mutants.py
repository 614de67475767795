"""Requests and answers that nearly are what they should be, for the fuzzers: made from real ones, one seed each."""

import copy
import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A value as `json` reads it."""

HERE = Path(__file__).parent
SURROGATE = "cut \ud83d"
ODD: tuple[object, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.0,
    1.5,
    1e308,
    2**63,
    10**30,
    "",
    "x",
    SURROGATE,
    "é\0\u2028\n\n data: [DONE]",
    [],
    {},
    [None],
    [[]],
    {"type": "text"},
    {"type": "tool_use", "id": "", "name": "x"},
    {"role": "assistant"},
    {"index": -3},
    {"index": 10**25},
    "y" * 3000,
)
GARBAGE = (b"\xff", b"\0", b'"', b"{", b"}]", b"\\ud83d", b"\r\n", b"\n\n", b": x\n\n", b"[" * 300, b"data: ", b"1e999")
ODD_EVENTS = (
    b": waiting",
    b"data:",
    b"data: ",
    b"data: null",
    b"data: 7",
    b"data: []",
    b"data: {}",
    b"data: [DONE]",
    b"data: {",
    b"data: \xff\xfe",
    b"event: error\ndata: {}",
    b"event: x",
    b"id: 1\nretry: 5",
    b'data: {"choices":[]}',
    b'data: {"choices":[null]}',
    b'data: {"choices":[{"index":7,"delta":{"content":"other"}}]}',
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}}]}',
    b'data: {"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"arguments":{"x":1}}}]}}]}',
    b'data: {"choices":[{"finish_reason":"length"}]}',
    b'data: {"error":"broke"}',
    b'data: {"error":{"message":"broke","code":503}}',
    b"data: one\ndata: two",
)


def read(*patterns: str) -> list[bytes]:
    """Return the golden files whose paths match, in order."""
    found = sorted({path for pattern in patterns for path in HERE.glob(pattern)})
    assert found, patterns
    return [path.read_bytes() for path in found]


def mutated(rng: random.Random, sample: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Return a JSON document with some of its values changed, and now and then some of its bytes."""
    document = json.loads(sample)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 6))):
        document = _changed(rng, document, others)
    written = json.dumps(document, ensure_ascii=True if rng.random() < 0.8 else SURROGATE in json.dumps(document))
    body = written.encode("utf-8", "surrogatepass")
    return scratched(rng, body) if rng.random() < 0.2 else body


def scratched(rng: random.Random, body: bytes) -> bytes:
    """Return bytes with some of them lost, doubled, or garbage between them."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(body) + 1)
        length = rng.choice((1, 1, 2, 9, 200))
        match rng.randrange(5):
            case 0:
                body = body[:at] + rng.choice(GARBAGE) + body[at:]
            case 1:
                body = body[:at] + body[at + length :]
            case 2:
                body = body[: at + length] + body[at:]
            case 3:
                body = body[:at]
            case _:
                body = body[:at] + rng.randbytes(1) + body[at + 1 :]
    return body


def mutated_stream(rng: random.Random, sample: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Return a stream of events, some of them lost, doubled, out of order, changed or of another stream."""
    events = [event for event in sample.replace(b"\r\n", b"\n").split(b"\n\n") if event]
    for _ in range(rng.choice((0, 1, 1, 2, 3, 6))):
        at = rng.randrange(len(events) + 1)
        match rng.randrange(7):
            case 0:
                del events[at : at + rng.choice((1, 1, 3))]
            case 1:
                events[at:at] = events[at : at + 1]
            case 2:
                rng.shuffle(events)
            case 3:
                events.insert(at, rng.choice(ODD_EVENTS))
            case 4 if others:
                other = rng.choice(others).split(b"\n\n")
                events.insert(at, rng.choice(other))
            case _:
                if at < len(events):
                    events[at] = _changed_event(rng, events[at])
    newline = b"\r\n" if rng.random() < 0.1 else b"\n"
    stream = b"".join(event.replace(b"\n", newline) + newline * 2 for event in events)
    if rng.random() < 0.15:
        stream = scratched(rng, stream)
    return stream if rng.random() < 0.8 else stream[: rng.randrange(len(stream) + 1)]


def cut(rng: random.Random, data: bytes) -> list[bytes]:
    """Return data in pieces, most of the time few of them."""
    count = rng.choice((0, 1, 1, 2, 5, 40))
    bounds = sorted({0, len(data), *(rng.randrange(len(data) + 1) for _ in range(count))})
    return [data[start:end] for start, end in itertools.pairwise(bounds)]


def _changed_event(rng: random.Random, event: bytes) -> bytes:
    """Return an event with another document, where it has one that can be read."""
    head, mark, data = event.partition(b"data: ")
    try:
        document = json.loads(data)
    except ValueError:
        return scratched(rng, event)
    for _ in range(rng.choice((1, 1, 2))):
        document = _changed(rng, document, ())
    return head + mark + json.dumps(document).encode()


def _places(value: Json, found: list[tuple[Json, Json]]) -> list[tuple[Json, Json]]:
    """Return every member and element in a document: its container and its key."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        found.append((value, key))
        _places(each, found)
    return found


def _changed(rng: random.Random, document: Json, others: Sequence[bytes]) -> Json:
    places = _places(document, [])
    if not places or rng.random() < 0.02:
        return copy.deepcopy(rng.choice(ODD))
    container, key = rng.choice(places)
    value = copy.deepcopy(container[key])
    match rng.randrange(8):
        case 0:
            del container[key]
        case 1 if isinstance(container, list):
            container.insert(key, value)
        case 2:
            container[key] = [value]
        case 3:
            container[key] = {"type": value}
        case 4:
            other, place = rng.choice(places)
            container[key] = copy.deepcopy(other[place])
        case 5 if others:
            other, place = rng.choice(_places(json.loads(rng.choice(others)), []) or [([0], 0)])
            container[key] = other[place]
        case 6 if isinstance(container, dict):
            name = rng.choice(("model", "stream", "type", "role", "id", "input", "content", "x"))
            container[name] = copy.deepcopy(rng.choice(ODD))
        case _:
            container[key] = copy.deepcopy(rng.choice(ODD))
    return document
