"""Who calls: the principal that runs belong to, and the caller that they are accounted to for fairness."""

from collections.abc import Mapping
from typing import Final

from luftpause.core.model.ids import (
    ANONYMOUS_CALLER,
    ANONYMOUS_PRINCIPAL,
    CallerId,
    PrincipalId,
)

CALLER_HEADER: Final = "x-luftpause-caller"
CALLER_META: Final = "luftpause/caller"
SESSION_HEADER: Final = "mcp-session-id"


def caller_of(
    headers: Mapping[str, str], meta: Mapping[str, object], principal: PrincipalId, *, max_bytes: int
) -> CallerId:
    """Return the caller: header, else `_meta`, else the principal, else the MCP session, else the shared one.

    Its name is cut at `max_bytes` of UTF-8.
    """
    claimed = meta.get(CALLER_META)
    named = (
        # Header values arrive as Latin-1; clients that send more than ASCII send UTF-8.
        headers.get(CALLER_HEADER, "").encode("latin-1", "replace").decode("utf-8", "replace"),
        claimed if isinstance(claimed, str) else "",
        "" if principal == ANONYMOUS_PRINCIPAL else principal,
        headers.get(SESSION_HEADER, ""),
    )
    for name in named:
        cleaned = _clean(name, max_bytes)
        if cleaned:
            return CallerId(cleaned)
    return ANONYMOUS_CALLER


def _clean(name: str, max_bytes: int) -> str:
    """Return a name that can stand in a header: no control characters, at most so many bytes of UTF-8."""
    printable = "".join(letter for letter in name if letter.isprintable()).strip()
    return printable.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")
