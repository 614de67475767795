"""Which headers mean something to us, which go on to an engine, and which come back.

Nothing here knows a turn. Hop-by-hop headers end at each side; credentials and our own headers never go upstream.
"""

import secrets
from collections.abc import Container, Iterable, Sequence
from typing import Final
from urllib.parse import unquote_to_bytes

import msgspec

from luftpause.core.model.ids import ANONYMOUS_CALLER, CallerId, PrincipalId, RunId, ToolCallId
from luftpause.core.model.principals import Principal
from luftpause.core.model.turns import ServiceClass
from luftpause.ports.engines import Header

RUN_HEADER: Final = b"x-luftpause-run-id"
CLASS_HEADER: Final = b"x-luftpause-class"
CALLER_HEADER: Final = b"x-luftpause-caller"
PARENT_HEADER: Final = b"x-luftpause-parent"
"""In a request: the run that this one was begun by. In an answer: what the request named, where it is known."""
PARENT_CALL_HEADER: Final = b"x-luftpause-parent-call"
"""The same by the tool call that began this run: whoever's answer had a call of this id is the parent."""
PARENT_THREAD_HEADER: Final = b"x-luftpause-parent-thread"
"""The same by the thread of Codex that began this run, for engines whose calls have no ids of their own."""
APPROVE_TOOLS_HEADER: Final = b"x-luftpause-approve-tools"
"""In a request: the tools of its, by name and with commas between, whose calls a person is asked to allow first."""
LEFT_OUT_HEADER: Final = b"x-luftpause-left-out"
"""In an answer: the tools of the request that run at a model's provider, which nobody was offered."""

_CLASSES: Final = {b"interactive": ServiceClass.INTERACTIVE, b"batch": ServiceClass.BATCH}
RUN_ID_MAX: Final = 128
CALL_ID_MAX: Final = 256
_HOP_BY_HOP: Final = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade")
)
_NOT_UPSTREAM: Final = _HOP_BY_HOP | {
    b"accept-encoding",
    b"api-key",
    b"authorization",
    b"content-length",
    b"cookie",
    b"expect",
    b"host",
    b"x-api-key",
    b"x-goog-api-key",
}
_NOT_UPSTREAM_PREFIXES: Final = (b"proxy-", b"x-luftpause-")
_OF_ITS_ADDRESS: Final = frozenset((b"alt-svc", b"clear-site-data", b"set-cookie", b"strict-transport-security"))
"""What an engine, or a proxy before it, says of its own address: a browser would take it to be said of ours."""
_OF_ITS_BODY: Final = frozenset(
    (b"content-digest", b"content-encoding", b"content-length", b"content-md5", b"content-type", b"digest", b"etag")
)
"""What an engine says of the bytes of its body: it holds of no other ones."""
_NOT_DOWNSTREAM: Final = (
    _HOP_BY_HOP | _OF_ITS_ADDRESS | {b"proxy-authenticate", RUN_HEADER, PARENT_HEADER, LEFT_OUT_HEADER}
)
_NO_NAMES: Final[frozenset[str]] = frozenset()
_CONNECTION_PLAIN: Final = (b"keep-alive", b"close")


class _GoesUpstream(dict[bytes, bool]):
    """Whether a header goes to an engine, by its name; what was asked before is remembered, within bounds."""

    def __missing__(self, name: bytes) -> bool:
        goes = name not in _NOT_UPSTREAM and not name.startswith(_NOT_UPSTREAM_PREFIXES)
        if len(self) < _NAMES_REMEMBERED_MAX and len(name) <= _NAME_REMEMBERED_MAX:
            self[name] = goes
        return goes


_NAMES_REMEMBERED_MAX: Final = 1024
_NAME_REMEMBERED_MAX: Final = 64
_GOES_UPSTREAM: Final = _GoesUpstream()


class BadHeaderError(Exception):
    """A header of ours holds what it must not. The message is for the client."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Whose a turn is and what its request's headers say about it; None or empty where they do not say.

    Attributes:
        approve_tools: the tools whose calls a person is asked to allow first.
    """

    run: RunId | None
    parent: RunId | None
    parent_call: ToolCallId | None
    parent_thread: str
    service_class: ServiceClass
    principal: PrincipalId
    caller: CallerId
    approve_tools: frozenset[str] = frozenset()


def standing_of(headers: dict[bytes, bytes], principal: Principal, *, caller_bytes: int) -> Standing:
    """Read the headers of ours; the class is the principal's usual one unless named, the caller's name is cut.

    Raises:
        BadHeaderError: a run id that is not 1 to 128 printable ASCII characters, or an unknown class.
    """
    named = headers.get(CLASS_HEADER)
    service_class = principal.usual_class if named is None else _CLASSES.get(named)
    if service_class is None:
        shown = (named or b"").decode("ascii", "backslashreplace")[:100]
        raise BadHeaderError(f"x-luftpause-class is {shown!r}: it must be 'interactive' or 'batch'")
    return Standing(
        run=_run_id(headers, RUN_HEADER),
        parent=_run_id(headers, PARENT_HEADER),
        parent_call=ToolCallId(_name(headers, PARENT_CALL_HEADER)) or None,
        parent_thread=_name(headers, PARENT_THREAD_HEADER),
        service_class=service_class,
        principal=principal.name,
        caller=_caller(headers.get(CALLER_HEADER, b"")[:caller_bytes]),
        approve_tools=_names(headers.get(APPROVE_TOOLS_HEADER, b"")),
    )


def is_run_id(text: str) -> bool:
    """Return whether a text may be a run's id: 1 to 128 printable ASCII characters."""
    return 0 < len(text) <= RUN_ID_MAX and text.isascii() and text.isprintable()


def fresh_run() -> RunId:
    """Return the id of a run that nobody has named, for an answer given before the scheduler was asked."""
    return RunId("run_" + secrets.token_urlsafe(16))


def run_to_echo(headers: dict[bytes, bytes]) -> RunId:
    """Return the run id for an answer given before the scheduler was asked: the client's if valid, else a new one."""
    named = headers.get(RUN_HEADER, b"").decode("latin-1")
    return RunId(named) if is_run_id(named) else fresh_run()


def refusal_headers(headers: Iterable[Header]) -> Sequence[Header]:
    """Return the run header for refusals that the door makes before the dataplane is reached."""
    return ((RUN_HEADER, run_to_echo(dict(headers)).encode("ascii")),)


def for_engine(headers: Sequence[Header], names: Container[bytes]) -> list[Header]:
    """Return the client's headers that go on to the engine. `names`: the names of all of them."""
    if b"connection" in names and any(map(_names_others, headers)):
        headers = _without_named(headers)
    return [header for header in headers if _GOES_UPSTREAM[header[0]]]


_SHARED_MAX: Final = 256
_SHARED: Final[dict[tuple[Header, ...], tuple[Header, ...]]] = {}


def shared(headers: Iterable[Header]) -> tuple[Header, ...]:
    """Return headers as the object that equal ones were before: who remembers what it made of them finds it again."""
    fresh = tuple(headers)
    if len(_SHARED) >= _SHARED_MAX:
        _SHARED.clear()
    return _SHARED.setdefault(fresh, fresh)


def query_for_engine(query: bytes) -> bytes:
    """Return a query without its `key`, which is a token of ours. The rest stays as it is."""
    if not query:
        return query
    return b"&".join(part for part in query.split(b"&") if unquote_to_bytes(part.partition(b"=")[0]) != b"key")


def for_client(headers: Iterable[Header], run: RunId) -> list[Header]:
    """Return the engine's headers that go on to the client, and the run's."""
    kept: list[Header] = [(RUN_HEADER, run.encode("ascii"))]
    for header in headers:
        if header[0] not in _NOT_DOWNSTREAM:
            kept.append(header)
        elif _names_others(header):
            return for_client(_without_named(headers), run)
    return kept


def reframed(headers: Iterable[Header]) -> tuple[Header, ...]:
    """Return the engine's headers that go on with a body of ours in place of its own."""
    return tuple(
        header
        for header in _without_named(headers)
        if header[0] not in _NOT_DOWNSTREAM and header[0] not in _OF_ITS_BODY
    )


def retold(headers: Iterable[Header], content_type: bytes) -> list[Header]:
    """Return headers as they go with a stream of ours: of this type, and of a length that nobody knows."""
    kept = [header for header in headers if header[0] not in _OF_ITS_BODY]
    return [*kept, (b"content-type", content_type)]


def _names_others(header: Header) -> bool:
    """Return whether a header names others that end at this side of the door."""
    return header[0] == b"connection" and header[1].lower() not in _CONNECTION_PLAIN


def _without_named(headers: Iterable[Header]) -> list[Header]:
    """Return the headers less those that connection headers name, and less these."""
    kept = [header for header in headers if header[0] != b"connection"]
    lists = [value.lower().split(b",") for name, value in headers if name == b"connection"]
    named = {name.strip() for names in lists for name in names} - {b"content-length", b"content-type"}
    return [header for header in kept if header[0] not in named]


def _run_id(headers: dict[bytes, bytes], name: bytes) -> RunId | None:
    value = headers.get(name)
    if value is None:
        return None
    named = value.decode("latin-1")
    if not is_run_id(named):
        raise BadHeaderError(f"{name.decode()} must be 1 to {RUN_ID_MAX} printable ASCII characters")
    return RunId(named)


def _name(headers: dict[bytes, bytes], name: bytes) -> str:
    """Return a name that others gave, empty where it identifies nothing: it never makes a request a bad one."""
    value = headers.get(name, b"").decode("latin-1")
    return value if len(value) <= CALL_ID_MAX and value.isascii() and value.isprintable() else ""


def _names(value: bytes) -> frozenset[str]:
    return frozenset(value.decode("latin-1").replace(" ", "").split(",")) if value else _NO_NAMES


def _caller(value: bytes) -> CallerId:
    """Return the caller, cut without splitting a character; bytes that are no UTF-8 are left out."""
    if not value:
        return ANONYMOUS_CALLER
    return CallerId(value.decode("utf-8", "ignore")) or ANONYMOUS_CALLER
