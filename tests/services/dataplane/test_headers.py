"""What headers become on their way; what they do to a turn is told in the tests of its course."""

import pytest

from luftpause.core.model.principals import ANONYMOUS
from luftpause.services.dataplane.headers import APPROVE_TOOLS_HEADER, shared, standing_of


def test_equal_headers_are_one_object() -> None:
    first = shared([(b"accept", b"a/b"), (b"x", b"1")])

    assert first == ((b"accept", b"a/b"), (b"x", b"1"))
    assert shared([(b"accept", b"a/b"), (b"x", b"1")]) is first
    assert shared([(b"accept", b"a/b"), (b"x", b"2")]) is not first


def test_no_more_headers_are_kept_than_allowed() -> None:
    first = shared([(b"x", b"first")])
    for number in range(1000):
        shared([(b"x", b"%d" % number)])

    again = shared([(b"x", b"first")])
    assert again == first
    assert again is not first, "it was forgotten"


@pytest.mark.parametrize(
    ("header", "names"),
    [
        (None, set()),
        (b"delete", {"delete"}),
        (b"delete, wiki__drop", {"delete", "wiki__drop"}),
        (b"\xff,", {"\xff", ""}),
    ],
)
def test_the_tools_that_a_person_is_asked_about_are_named(header: bytes | None, names: set[str]) -> None:
    headers = {} if header is None else {APPROVE_TOOLS_HEADER: header}
    assert standing_of(headers, ANONYMOUS, caller_bytes=128).approve_tools == names
