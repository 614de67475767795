import random

from luftpause.core.dialects.marked_events import MarkedEvents, Marker
from luftpause.core.dialects.sse import data_of, split_events

CHAT = (
    Marker(b'finish_reason":', b'"'),
    Marker(b'usage":', b"{"),
    Marker(b'tool_calls":', b"["),
    Marker(b'"error":'),
    Marker(b"[DONE]"),
)
TEXT = b'content":"'
SEEDS = 400


def test_documents_with_a_marker_come_in_order_and_once() -> None:
    block = b'event: a\ndata: {"x":1,"y":2}\n\ndata: {"z":3}\n\n: y\n\ndata: "y"\n\n'
    events = MarkedEvents((Marker(b'"y"'), Marker(b'"x"')))

    assert events.documents(block) == [b'{"x":1,"y":2}', b'"y"']


def test_a_value_may_follow_after_one_space_and_must_begin_rightly() -> None:
    events = MarkedEvents((Marker(b'"usage":', b"{"),))

    for said, counts in (
        (b"{", True),
        (b" {", True),
        (b"  {", False),
        (b"null", False),
        (b" null", False),
        (b"", False),
    ):
        document = b'{"usage":' + said
        assert events.documents(b"data: " + document + b"\n\n") == [document] * counts
    assert events.documents(b'data: {"usage":null,"more":{"usage":{}}}\n\n')


def test_an_event_like_the_last_is_told_from_one_that_only_looks_so() -> None:
    events = MarkedEvents(CHAT, TEXT)
    plain = b'data: {"content":"%b"},"finish_reason":null}\n\n'
    for said in (b"one", b"two", b"three", b"four", rb"a \"quoted\" one"):
        assert events.documents(plain % said) == []
    assert events.documents(plain % b'x"},"usage":{"a":"') == [
        b'{"content":"x"},"usage":{"a":""},"finish_reason":null}'
    ]
    assert events.documents((plain % b"x").replace(b"null", b'"stop"')) != []
    assert events.documents(plain % b'"},"error":"') != []


def test_what_is_passed_over_has_no_marker_that_is_quoted() -> None:
    # The parts that markers and the ends of strings are made of, in any order: some of it is no JSON.
    parts = [b'"', b":", b"{", b"[", b" ", b",", b"}", b"\\", b"x", TEXT, b"error", b"usage", b"content", b"[DONE]"]
    parts += [marker.word + marker.value for marker in CHAT]
    for seed in range(SEEDS):
        dice = random.Random(seed)
        events = MarkedEvents(CHAT, TEXT)
        frame = b"".join(dice.choices(parts, k=4)), b"".join(dice.choices(parts, k=4))
        for _ in range(12):
            said = b"".join(dice.choices(parts[3:9] + parts[10:], k=dice.randrange(4)))
            event = b"data: {" + frame[0] + TEXT + said + b'"' + dice.choice((b"}", b",", b"")) + frame[1]
            expected = MarkedEvents(CHAT).documents(event + b"\n\n")
            seen = events.documents(event + b"\n\n")
            assert seen == expected or (seen == [] and b"[DONE]" in said), f"seed {seed}: {event!r}"


def test_a_block_of_many_events_is_looked_at_one_by_one() -> None:
    dice = random.Random(7)
    events = MarkedEvents(CHAT, TEXT)
    plain = b'data: {"content":"%b"}\n\n'
    for _ in range(50):
        block = b"".join(
            plain % dice.choice((b"x", b"", b'"},"error":"', rb"\"")) if dice.random() < 0.9 else b"data: [DONE]\n\n"
            for _ in range(8)
        )
        marked = [data_of(event) for event in split_events(block) if b"error" in event or b"[DONE]" in event]
        assert events.documents(block) == marked


def test_the_event_that_streams_end_by_says_what_its_marker_says() -> None:
    events = MarkedEvents(CHAT, TEXT, end=b"data: [DONE]")

    assert events.documents(b'data: {"usage":{}}\n\ndata: [DONE]\n\n') == [b'{"usage":{}}', b"[DONE]"]
    assert events.documents(b"data:[DONE]\n\n") == [b"[DONE]"]
