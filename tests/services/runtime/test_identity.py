import pytest

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, PrincipalId
from luftpause.services.runtime.identity import caller_of

SESSION = {"mcp-session-id": "s1"}
META = {"luftpause/caller": "from-meta"}
HEADER = {"x-luftpause-caller": "from-header"}


@pytest.mark.parametrize(
    ("headers", "meta", "principal", "caller"),
    [
        ({**HEADER, **SESSION}, META, PrincipalId("p"), "from-header"),
        (SESSION, META, PrincipalId("p"), "from-meta"),
        (SESSION, {}, PrincipalId("p"), "p"),
        (SESSION, {}, ANONYMOUS_PRINCIPAL, "s1"),
        ({}, {}, ANONYMOUS_PRINCIPAL, "anonymous"),
        ({}, {"luftpause/caller": 7}, ANONYMOUS_PRINCIPAL, "anonymous"),
        ({"x-luftpause-caller": "zoë".encode().decode("latin-1")}, {}, ANONYMOUS_PRINCIPAL, "zoë"),
        ({}, {"luftpause/caller": "a\r\nx-evil: 1"}, ANONYMOUS_PRINCIPAL, "ax-evil: 1"),
        ({}, {"luftpause/caller": "é" * 100}, ANONYMOUS_PRINCIPAL, "é" * 64),
        ({"x-luftpause-caller": " \t"}, {}, ANONYMOUS_PRINCIPAL, "anonymous"),
    ],
)
def test_the_caller_is_the_first_that_is_named(
    headers: dict[str, str], meta: dict[str, object], principal: PrincipalId, caller: str
) -> None:
    assert caller_of(headers, meta, principal, max_bytes=128) == caller
