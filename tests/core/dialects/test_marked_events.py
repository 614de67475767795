from luftpause.core.dialects.marked_events import MarkedEvents, Marker


class Read:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.documents: list[bytes] = []

    def take(self, document: bytes) -> bool:
        self.documents.append(document)
        return True


def read(events: MarkedEvents, block: bytes) -> list[bytes]:
    reader = Read()
    events.tell(block, reader)
    return reader.documents


def test_documents_with_a_marker_come_in_order_and_once() -> None:
    block = b'event: a\ndata: {"x":1,"y":2}\n\ndata: {"z":3}\n\n: y\n\ndata: "y"\n\n'
    events = MarkedEvents((Marker(b'"y"'), Marker(b'"x"')))

    assert read(events, block) == [b'{"x":1,"y":2}', b'"y"']


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
        assert read(events, b"data: " + document + b"\n\n") == [document] * counts
    assert read(events, b'data: {"usage":null,"more":{"usage":{}}}\n\n')
