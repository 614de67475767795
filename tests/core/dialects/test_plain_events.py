import json
import random

from luftpause.core.dialects.observe import StreamObserver
from luftpause.core.dialects.plain_events import PLAIN_BYTES_MAX, PlainEvents

TEXT = b'content":"'
PLAIN = b'data: {"choices":[{"delta":{"content":"%b"},"finish_reason":null}]}\n\n'
SEEDS = 600


class Read:
    """Keeps what it is told; what has the member `news`, or is no JSON, says something."""

    def __init__(self) -> None:
        self.documents: list[bytes] = []

    def take(self, document: bytes) -> bool:
        self.documents.append(document)
        try:
            return "news" not in json.loads(document)
        except ValueError:
            return False


def read(events: PlainEvents, *blocks: bytes) -> list[bytes]:
    reader = Read()
    for block in blocks:
        events.tell(block, reader)
    return reader.documents


def test_an_event_like_a_plain_one_is_not_read() -> None:
    events = PlainEvents(TEXT)

    first_two = read(events, *(PLAIN % said for said in (b"one", b"two")))
    assert len(first_two) == 2  # the first one is like no other, as a rule
    assert read(events, *(PLAIN % said for said in (b"three", b"", rb"a \n \u00fc", b"{[:,]}"))) == []
    assert read(events, (PLAIN % b"five") * 8 + (PLAIN % b"six").replace(b"null", b'"stop"')) != []


def test_an_event_that_says_something_is_read_each_time() -> None:
    events = PlainEvents(TEXT)
    news = b'data: {"content":"a","news":1}\n\n'

    assert len(read(events, *[news] * 20)) == 20


def test_an_event_is_told_from_one_that_only_looks_like_the_plain_one() -> None:
    for said in (b'x"},"usage":{"a":"', b'"},"error":"', rb"a \"quoted\" one"):
        assert len(read(PlainEvents(TEXT), PLAIN % b"one", PLAIN % b"two", PLAIN % b"three", PLAIN % said)) == 3, said


def test_what_is_not_whole_json_or_too_long_or_has_more_lines_is_not_remembered() -> None:
    for odd in (
        b'data: {"content":"a","x"}\n\n',
        b'data: {"content":"%b"}\n\n' % (b"a" * PLAIN_BYTES_MAX),
        b'event: a\ndata: {"content":"a"}\n\n',
        b'data: {"content":"a\\"}\n\n',
        b'data: {"other":"a"}\n\n',
    ):
        assert len(read(PlainEvents(TEXT), *[odd] * 5)) == 5, odd


def test_comments_are_not_read() -> None:
    assert read(PlainEvents(TEXT), b": ping\n\nevent: a\n\ndata:\n\n") == []


def test_what_is_passed_over_says_nothing() -> None:
    # The parts that documents are made of, in any order: most of it is no JSON, some says something.
    parts = [b'"', b":", b"{", b"[", b" ", b",", b"}", b"]", b"\\", b"x", TEXT, b"null", b'"content":"', b"[DONE]"]
    parts += [b'"finish_reason":"stop"', b'"usage":{"prompt_tokens":1}', b'"error":{"a":1}', b"\ndata: ", b"\n: "]
    parts += [b'"tool_calls":[{"id":"c"}]', b'"choices":[{"delta":{"content":"a"}}]', b'"usage":null', b'"error":null']
    for seed in range(SEEDS):
        dice = random.Random(seed)
        frame = b"".join(dice.choices(parts, k=dice.randrange(3))), b"".join(dice.choices(parts, k=dice.randrange(3)))
        passing, reading = StreamObserver(), StreamObserver()
        for _ in range(12):
            said = b"".join(dice.choices(parts, k=dice.randrange(4)))
            head = dice.choice((b"{", b'{"id":"1",', b"{" + frame[0]))
            tail = dice.choice((b'"}', b'","usage":null}', b'"' + frame[1] + b"}"))
            event = b"data: " + head + b'"content":"' + said + tail + b"\n\n"
            # The same event with a comment, and so with two lines, is always read.
            passing.feed(event)
            reading.feed(b": x\n" + event)
            assert passing.observed() == reading.observed(), f"seed {seed}: {event!r}"
            assert passing.done == reading.done, f"seed {seed}: {event!r}"
