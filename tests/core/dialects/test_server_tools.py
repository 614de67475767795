import pytest

from luftpause.core.dialects.request import BadRequestError
from luftpause.core.dialects.server_tools import left_out


def test_beside_others_they_are_left_out_and_named_once() -> None:
    assert left_out(["web_search", "mcp", "web_search"], has_others=True) == ("web_search", "mcp")


@pytest.mark.parametrize("has_others", [True, False])
def test_a_request_without_any_is_not_touched(has_others: bool) -> None:
    assert left_out([], has_others=has_others) == ()


def test_alone_they_are_refused() -> None:
    with pytest.raises(BadRequestError, match="no other tools than web_search, mcp: such tools"):
        left_out(["web_search", "mcp"], has_others=False)
