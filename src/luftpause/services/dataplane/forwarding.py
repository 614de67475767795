"""In which words a placed turn goes to its engine, and how the answer comes back from them.

An engine that speaks the client's dialect gets the client's bytes. One that does not gets the same in Chat Completions;
so do those that would leave out or refuse the files in it: see `files`.
llama-server, which may not notice that a client without a stream left, is asked for a stream of a chat or completion by
every such client, unless it streams no such answer.
Knows neither sockets nor the scheduler.
"""

import contextlib
from collections.abc import Container, Mapping, Sequence, Set
from typing import Final, cast

import msgspec

from luftpause.core.dialects.chat_assembly import ChatAssembly, CompletionAssembly
from luftpause.core.dialects.dialect import Dialect, TranslatedDialect, WayBack
from luftpause.core.dialects.edits import ALL_EDITS, Edit, with_members
from luftpause.core.dialects.files import holds_files
from luftpause.core.dialects.openai_chat import OpenAiChat
from luftpause.core.dialects.request import BadRequestError, read_members
from luftpause.core.dialects.said import Said
from luftpause.core.dialects.single_request import CHAT_PATH, Sent, SingleRequest
from luftpause.core.dialects.ways_back import Assembles
from luftpause.core.model.replicas import ON_ONE_MACHINE, EngineKind, Placement
from luftpause.ports.engines import EngineRequest, Header

COMPLETIONS: Final = "/v1/completions"
CHAT: Final = OpenAiChat.name
"""Every engine speaks it."""
_MESSAGES: Final = "messages"
"""llama-server (b11549) cannot be told a slot in its words, but in those of Chat Completions."""
_IN_SLOTS: Final = (CHAT_PATH, COMPLETIONS.encode(), b"/v1/responses")
"""Where llama-server takes `id_slot`."""
_WITH_PRIORITIES: Final = (CHAT_PATH, COMPLETIONS.encode())
"""Where vLLM and SGLang take `priority`."""
_CAPPED: Final[Mapping[bytes, Edit]] = {CHAT_PATH: Edit.MAX_TOKENS, b"/v1/responses": Edit.MAX_OUTPUT_TOKENS}
"""Where an answer is bounded by which member. A completion of old is short where nobody says anything."""
_BOUNDS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict")
"""By what a client may bound an answer itself: some engines know all of them, whatever the dialect."""
_ESCAPE: Final = b"\\u"
"""A member's name may be written with it."""
CAPS: Final = frozenset(_CAPPED.values())
_AS_STREAM: Final[Mapping[Edit, tuple[str, object]]] = {
    Edit.STREAM: ("stream", True),
    Edit.INCLUDE_USAGE: ("stream_options", {"include_usage": True}),
}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a client asked for.

    Attributes:
        target: the request's path and query, as the engine gets it where it speaks the dialect.
        path: the request's path alone.
        headers: those that go on to an engine.
        said: what was said in it, where that may have to identify its run; else None.
        model: what the client called the model; empty where it named none.
        approve_tools: the tools whose calls a person is asked to allow first, by name.
    """

    dialect: Dialect
    target: bytes
    path: str
    stream: bool
    headers: Sequence[Header]
    body: bytes
    said: Said | None = None
    model: str = ""
    approve_tools: frozenset[str] = frozenset()


class Forwarded(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine is sent.

    Attributes:
        back: how its answer becomes the client's where it comes as the client wants it, streamed or whole; None where
            it is that as it comes.
        assembles: makes what puts its answer together, where it is asked for a stream and the client wants none.
        left_out: the tools, by name, that the client offers and the engine is not told of.
        edits: what was changed in what the client, or a translation, said.
        reply_cap: tokens that its answer may have, of these; 0 where none is said by us.
    """

    request: EngineRequest
    back: WayBack | None
    assembles: Assembles | None = None
    left_out: Sequence[str] = ()
    edits: tuple[Edit, ...] = ()
    reply_cap: int = 0


def forward(
    asked: Asked, placement: Placement, *, speaks: bool, turn: str = "", allowed: Set[Edit] = ALL_EDITS
) -> Forwarded:
    """Return what the engine of a placement is sent: the model under the engine's own name for it.

    Args:
        asked: what the client asked for.
        placement: where the turn runs.
        speaks: whether the engine speaks the client's dialect.
        turn: what no other turn is called.
        allowed: the changes that may be made where they are due.

    Raises:
        BadRequestError: the engine does not speak the client's dialect, and the request cannot be said in its own.
    """
    forwarded = _said(asked, placement, speaks=speaks, turn=turn, allowed=allowed)
    request = forwarded.request
    members: dict[Edit, object] = {}
    is_renamed = asked.model and placement.model and asked.model != placement.model and Edit.MODEL in allowed
    if is_renamed and (forwarded.back is not None or _names(request.body, "model")):
        members[Edit.MODEL] = placement.model  # not in Gemini's own words, where the path does
    if _has_slot(placement, allowed) and _goes_to(request, _IN_SLOTS):
        members[Edit.ID_SLOT] = placement.slot
    cap = None if asked.dialect.name == _MESSAGES else _cap_of(placement, request, allowed)
    if cap is not None and placement.charge is not None:
        members[cap] = placement.charge.reply_cap
    without: tuple[Edit, ...] = ()
    if placement.owns_priority and Edit.PRIORITY in allowed:
        if placement.priority is not None and _goes_to(request, _WITH_PRIORITIES):
            members[Edit.PRIORITY] = placement.priority
        elif request.body.find(b'"priority"') >= 0 and _names(request.body, "priority"):
            without = (Edit.PRIORITY,)
    if not members and not without:
        return forwarded
    try:
        named = {edit.value: value for edit, value in members.items()}
        body = with_members(request.body, named, [edit.value for edit in without])
    except BadRequestError:
        if Edit.MODEL in members:
            raise
        return forwarded  # legal, and yet only the engine can read it
    edited = EngineRequest(method=request.method, path=request.path, headers=request.headers, body=body)
    return Forwarded(
        request=edited,
        back=forwarded.back,
        assembles=forwarded.assembles,
        left_out=forwarded.left_out,
        edits=(*forwarded.edits, *members, *without),
        reply_cap=0 if cap is None or placement.charge is None else placement.charge.reply_cap,
    )


def _cap_of(placement: Placement, request: EngineRequest, allowed: Set[Edit]) -> Edit | None:
    """Return the member that is to bound an answer; None where none is, or the client has said something of it."""
    edit = _CAPPED.get(request.path.partition(b"?")[0]) if placement.charge and placement.charge.reply_cap else None
    if edit is None or edit not in allowed:
        return None
    body = request.body
    if body.find(_ESCAPE) < 0 and all(body.find(b'"%b"' % name.encode()) < 0 for name in _BOUNDS):
        return edit
    try:
        members = read_members(body, _BOUNDS)
    except BadRequestError:
        return None
    return None if any(members.get(name) is not None for name in _BOUNDS) else edit


def _goes_to(request: EngineRequest, paths: Container[bytes]) -> bool:
    return request.path.partition(b"?")[0] in paths


def _has_slot(placement: Placement, allowed: Set[Edit]) -> bool:
    return placement.slot is not None and Edit.ID_SLOT in allowed


def _said(asked: Asked, placement: Placement, *, speaks: bool, turn: str, allowed: Set[Edit]) -> Forwarded:
    dialect = asked.dialect
    unnoticed = placement.engine is EngineKind.LLAMA_CPP and not asked.stream and Edit.STREAM in allowed
    if dialect.name == CHAT:
        if not unnoticed or _is_never_streamed(asked.body):
            return Forwarded(request=_request(asked, CHAT_PATH, asked.body), back=None)
        return _as_stream(asked, asked.body, ChatAssembly, allowed)
    if speaks and placement.engine in ON_ONE_MACHINE and holds_files(dialect.name, asked.body):
        speaks = False
    if isinstance(dialect, SingleRequest):
        sent = dialect.sent(asked.target, asked.body, placement, speaks=speaks)
        return _single(asked, sent, allowed, unnoticed=unnoticed)
    is_slotless = _has_slot(placement, allowed) and dialect.name == _MESSAGES
    if not speaks or unnoticed:
        return _translated(asked, turn, allowed, unnoticed=unnoticed)
    if is_slotless:
        with contextlib.suppress(BadRequestError):
            return _translated(asked, turn, allowed, unnoticed=False)
    return Forwarded(request=_request(asked, asked.target, asked.body), back=None)


def _translated(asked: Asked, turn: str, allowed: Set[Edit], *, unnoticed: bool) -> Forwarded:
    translation = cast("TranslatedDialect", asked.dialect).translate(asked.path, asked.body, turn)
    if unnoticed:
        streamed = _as_stream(asked, translation.request, ChatAssembly, allowed)
        return Forwarded(
            request=streamed.request,
            back=translation,
            assembles=streamed.assembles,
            left_out=translation.left_out,
            edits=streamed.edits,
        )
    request = _request(asked, CHAT_PATH, translation.request)
    return Forwarded(request=request, back=translation, left_out=translation.left_out)


def is_event_stream(headers: Sequence[Header]) -> bool:
    """Say whether an answer comes as server-sent events."""
    for name, value in headers:
        if name == b"content-type":
            return value[:17].lower() == b"text/event-stream"
    return False


def _single(asked: Asked, sent: Sent, allowed: Set[Edit], *, unnoticed: bool) -> Forwarded:
    if unnoticed and sent.back is not None and sent.target == CHAT_PATH:
        streamed = _as_stream(asked, sent.body, ChatAssembly, allowed)
        return Forwarded(request=streamed.request, back=sent.back, assembles=streamed.assembles, edits=streamed.edits)
    if unnoticed and asked.path == COMPLETIONS and _is_one_completion(sent.body):
        return _as_stream(asked, sent.body, CompletionAssembly, allowed, sent.target)
    return Forwarded(request=_request(asked, sent.target, sent.body), back=sent.back)


def _names(body: bytes, member: str) -> bool:
    try:
        return member in read_members(body, (member,), "messages")
    except BadRequestError:
        return False


def _is_never_streamed(body: bytes) -> bool:
    """Say whether llama-server (b11549) streams something else than it answers whole.

    It refuses log probabilities beside tools, and leaves out the words of the assistant from which an answer goes on.
    """
    try:
        if b'"logprobs"' in body and b'"tools"' in body:
            asked = read_members(body, ("logprobs", "tools"), "messages")
            if asked.get("logprobs") and asked.get("tools"):
                return True
        return b'"assistant"' in body and _goes_on_from_assistant(body)
    except (BadRequestError, msgspec.DecodeError):
        return False


class _Role(msgspec.Struct):
    role: str = ""


def _goes_on_from_assistant(body: bytes) -> bool:
    """Say whether the last message of a chat is the assistant's.

    Raises:
        BadRequestError, msgspec.DecodeError: it is no chat that can be read.
    """
    messages = read_members(body, (), "messages").get("messages")
    if not isinstance(messages, msgspec.Raw):
        return False
    last = msgspec.json.decode(messages, type=list[msgspec.Raw])[-1:]
    return any(msgspec.json.decode(message, type=_Role).role == "assistant" for message in last)


def _is_one_completion(body: bytes) -> bool:
    """Say whether a completion is asked for once: several answers come in another shape than the chunks of a stream."""
    try:
        asked = read_members(body, ("prompt", "n"), "input")
    except BadRequestError:
        return False
    return isinstance(asked.get("prompt"), str) and asked.get("n") in (None, 1)


def _as_stream(
    asked: Asked, body: bytes, assembles: Assembles, allowed: Set[Edit], path: bytes = CHAT_PATH
) -> Forwarded:
    edits = tuple(edit for edit in _AS_STREAM if edit in allowed)
    try:
        body = with_members(body, dict(_AS_STREAM[edit] for edit in edits))
    except BadRequestError:  # legal, and yet only the engine can read it
        return Forwarded(request=_request(asked, path, body), back=None)
    return Forwarded(request=_request(asked, path, body), back=None, assembles=assembles, edits=edits)


def _request(asked: Asked, path: bytes, body: bytes) -> EngineRequest:
    return EngineRequest(method=b"POST", path=path, headers=asked.headers, body=body)
