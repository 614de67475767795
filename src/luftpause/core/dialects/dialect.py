"""A wire format as the LLM door sees it: how a request is read, how failures are written, how an answer is looked at.

A dialect other than Chat Completions also knows how to say the same in Chat Completions, for engines that do not speak
it. All of it is sans-IO: bytes in, bytes out.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from luftpause.core.dialects.failures import Failure
from luftpause.core.dialects.observe import Observer
from luftpause.core.dialects.said import Utterance
from luftpause.core.model.ids import ModelName, ToolCallId
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.model.turns import TurnShape


class UnfitAnswerError(Exception):
    """An engine's answer does not hold what its client asked for. The message says what is missing, for people."""


class Peek(Struct, frozen=True, kw_only=True):
    """What a request says about where it should go.

    Attributes:
        model: empty where a request may leave it open and does: the only one that replicas of the kind serve.
        stream: whether the client wants the answer piece by piece.
        tool_calls: ids that the conversation echoes, in order of appearance, without repeats; empty unless asked for.
        cache_key: the request's `prompt_cache_key`; empty unless asked for, or where there is none.
        kind: which replicas may serve it; None: single-pass, if any such replica serves the model, else generative.
        shape: whether it is a turn of a run.
        reply_max: tokens that the answer may have; 0 where the request does not say.
        call_words: names of what tells of calls, quotes included (inside a string those are escaped), where the request
            offers no tools; else empty.
    """

    model: ModelName
    stream: bool
    tool_calls: tuple[ToolCallId, ...] = ()
    cache_key: str = ""
    kind: ReplicaKind | None = ReplicaKind.GENERATIVE
    shape: TurnShape = TurnShape.IN_RUN
    reply_max: int = 0
    call_words: tuple[bytes, ...] = ()


def is_aside(found: Peek, body: bytes) -> bool:
    """Say whether a request offers no tools and tells of no call, as that for a title does. Searches the whole body."""
    return bool(found.call_words) and not any(word in body for word in found.call_words)


class Dialect(Protocol):
    """A wire format. Has no state."""

    @property
    def name(self) -> str:
        """What replicas that speak it by themselves say they speak: `chat`, `messages`, `responses`, `gemini`."""
        ...

    @property
    def ping(self) -> bytes:
        """What keeps a streaming client waiting before the engine has said anything: a whole event or comment."""
        ...

    @property
    def stream_type(self) -> bytes:
        """The content type of its streams."""
        ...

    def peek(self, path: str, body: bytes, *, with_identity: bool) -> Peek:
        """Read what routing needs.

        Args:
            path: the request's path, without its query.
            body: the request body as it came.
            with_identity: also read what tells which run it belongs to.

        Raises:
            BadRequestError: it cannot be routed: not a JSON object, a repeated key, no model, a wrong type.
        """
        ...

    def conversation(self, body: bytes) -> Sequence[Utterance]:
        """Return what is said in a request, to know it again by; nothing where clients always say more."""
        ...

    def error(self, failure: Failure) -> bytes:
        """Return the body of an answer that tells of a failure."""
        ...

    def error_event(self, failure: Failure) -> bytes:
        """Return what tells a streaming client of a failure after its stream has begun."""
        ...

    def reworded(self, status: int, body: bytes) -> bytes:
        """Return an engine's refusal in the words by which clients know what to do, empty where its own will do.

        Of an engine that speaks this dialect: `status` and `body` are as it sent them.
        """
        ...

    def observer(self, *, stream: bool) -> Observer:
        """Return what looks at an answer that is in this dialect."""
        ...

    def text_in(self, document: bytes) -> str:
        """Return the text of an answer in this dialect, whole or one event of its stream, to know it again by."""
        ...


class TranslatedDialect(Dialect, Protocol):
    """A dialect that can be said in Chat Completions."""

    def translate(self, path: str, body: bytes, turn: str = "") -> "Translation":
        """Say a request in Chat Completions. What an engine need not know for its answer may be left out.

        Args:
            path: the request's path, without its query.
            body: the request body as it came.
            turn: what no other turn is called; ids that have to be made up are made of it.

        Raises:
            BadRequestError: it asks for something that cannot be said there; the message names it.
        """
        ...


class WayBack(Protocol):
    """How the answer to a request that was changed on its way becomes the answer that its client asked for."""

    @property
    def failure(self) -> str:
        """Why a client that wants a stream was told in it that there is no answer; empty while there may be one."""
        ...

    def feed(self, data: bytes) -> bytes:
        """Take the next piece of the engine's answer, cut anywhere, and return what the client is to get for it.

        Raises:
            UnfitAnswerError: the client wants no stream, and this cannot become the whole that it wants.
        """
        ...

    def end(self) -> bytes:
        """Return what is to follow the last piece. The whole answer, where the client wants no stream.

        Raises:
            UnfitAnswerError: the client wants no stream, and the engine's answer cannot become one for it.
        """
        ...

    def error(self, status: int, body: bytes) -> bytes:
        """Return the body of an engine's refusal in the shape of this dialect."""
        ...

    def call_ids(self) -> Sequence[ToolCallId]:
        """Return the ids of tool calls that the client was given up to now, and will echo."""
        ...


class Translation(WayBack, Protocol):
    """One translated turn: its request, and the way back for its answer. Create one for each time it is sent."""

    @property
    def request(self) -> bytes:
        """The body of a Chat Completions request, streamed if the client wants a stream."""
        ...

    @property
    def left_out(self) -> Sequence[str]:
        """The tools, by name, that the request offers and no engine can be offered; see `server_tools`."""
        ...
