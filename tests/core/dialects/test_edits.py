import pytest

from luftpause.core.dialects.edits import with_members
from luftpause.core.dialects.request import BadRequestError


def test_a_member_is_set_and_every_other_value_stays_as_it_was_written() -> None:
    body = b'{ "model": "m", "stream":false, "x": 1.50e2, "y": {"b" : 1,"a":"\\u00e4"} }'

    assert with_members(body, {"stream": True, "n": {"u": True}}) == (
        b'{"model":"m","stream":true,"x":1.50e2,"y":{"b" : 1,"a":"\\u00e4"},"n":{"u":true}}'
    )


@pytest.mark.parametrize("body", [b'{"\\ud800": 1}', b"[]", b"{"])
def test_what_cannot_be_read_is_not_changed(body: bytes) -> None:
    with pytest.raises(BadRequestError):
        with_members(body, {"stream": True})


def test_a_member_is_taken_out_and_one_that_is_not_there_changes_nothing() -> None:
    body = b'{ "model": "m", "priority": 5, "x": 1.50e2 }'

    assert with_members(body, {"n": 1}, ("priority", "nothing")) == b'{"model":"m","x":1.50e2,"n":1}'
