"""Which session of its own a harness says that a request belongs to, in the headers that it sends by itself.

What real clients send was seen on the wire. Codex's `session-id` and `prompt_cache_key` are its parent's in a
sub-agent, so only its `thread-id` counts; and its idle clock counts events and no comments.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

SESSION_CHARS_MAX: Final = 256
"""A longer value identifies nothing."""


class HarnessSession(Struct, frozen=True, kw_only=True):
    """A session and its parent, each with the harness's name in front; empty where the harness does not say."""

    session: str = ""
    parent: str = ""


NO_SESSION: Final = HarnessSession()

_PLAIN: Final = (b"x-session-id", b"session_id", b"x-affinity", b"x-litellm-session-id")
"""Headers of opencode, pi, Mistral Vibe and LiteLLM, in order of trust."""
_CLAUDE_SESSION: Final = b"x-claude-code-session-id"
_CLAUDE_AGENT: Final = b"x-claude-code-agent-id"
_CODEX_THREAD: Final = b"thread-id"
_CODEX_PARENT: Final = b"x-codex-parent-thread-id"
_PLAIN_PARENT: Final = b"x-parent-session-id"
SESSION_HEADERS: Final = (_CLAUDE_SESSION, _CLAUDE_AGENT, _CODEX_THREAD, _CODEX_PARENT, *_PLAIN, _PLAIN_PARENT)
"""All headers that say which session a request belongs to."""

_CODEX: Final = "codex:"
_PING_EVENT: Final = b'event: ping\ndata: {"type":"ping"}\n\n'


def codex_session(thread: str) -> str:
    """Return the session that a thread of Codex is."""
    return f"{_CODEX}{thread}"


def ping_for(session: str, dialect: str, ping: bytes) -> bytes:
    """Return the sign of life for whoever waits: the dialect's own, but for Codex an event, the only thing it counts.

    Other clients of Responses fail on any event before `response.created`.
    """
    return _PING_EVENT if dialect == "responses" and session.startswith(_CODEX) else ping


def harness_session(headers: Mapping[bytes, bytes]) -> HarnessSession:
    """Return the session that a request's headers name; names are in lower case."""
    claude = _value(headers, _CLAUDE_SESSION)
    if claude:
        agent = _value(headers, _CLAUDE_AGENT)
        main = f"claude-code:{claude}:"
        return HarnessSession(session=main + agent, parent=main) if agent else HarnessSession(session=main)
    thread = _value(headers, _CODEX_THREAD)
    if thread:
        parent = _value(headers, _CODEX_PARENT)
        return HarnessSession(session=codex_session(thread), parent=codex_session(parent) if parent else "")
    for name in _PLAIN:
        session = _value(headers, name)
        if session:
            parent = _value(headers, _PLAIN_PARENT)
            return HarnessSession(session=f"session:{session}", parent=f"session:{parent}" if parent else "")
    return NO_SESSION


def _value(headers: Mapping[bytes, bytes], name: bytes) -> str:
    value = headers.get(name)
    if value is None or not 0 < len(value) <= SESSION_CHARS_MAX:
        return ""
    text = value.decode("latin-1")
    return text if text.isascii() and text.isprintable() else ""
