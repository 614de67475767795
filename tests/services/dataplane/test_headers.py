"""What headers become on their way; what they do to a turn is told in the tests of its course."""

from luftpause.services.dataplane.headers import shared


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
