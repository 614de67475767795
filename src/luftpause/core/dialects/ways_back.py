"""The way back of an answer that does not come as it was asked for, or as its client wants it: streamed or whole.

Engines stream unasked, and answer whole when asked for a stream. Where an answer is said in other words anyway, its
client gets what it asked for all the same. Sans-IO.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from luftpause.core.dialects.chat_answer import ANSWER_BYTES_MAX
from luftpause.core.dialects.chat_assembly import ChatAssembly
from luftpause.core.dialects.chat_pieces import in_pieces
from luftpause.core.dialects.dialect import UnfitAnswerError, WayBack
from luftpause.core.dialects.observe import observe_body
from luftpause.core.model.ids import ToolCallId

Assembles: TypeAlias = Callable[[], WayBack]
"""Makes what puts a stream together."""


class AssembledTranslation:
    """A way back: the engine's stream is put together, and the whole is said in the client's dialect."""

    def __init__(self, assembly: WayBack, translation: WayBack) -> None:
        self._assembly = assembly
        self._translation = translation

    @property
    def failure(self) -> str:
        """See `WayBack.failure`."""
        return ""

    def feed(self, data: bytes) -> bytes:
        """See `WayBack.feed`."""
        return self._assembly.feed(data)

    def end(self) -> bytes:
        """See `WayBack.end`."""
        return self._translation.feed(self._assembly.end()) + self._translation.end()

    def error(self, status: int, body: bytes) -> bytes:
        """See `WayBack.error`."""
        return self._translation.error(status, body)

    def call_ids(self) -> Sequence[ToolCallId]:
        """See `WayBack.call_ids`."""
        return self._translation.call_ids()


class PiecedTranslation:
    """A way back: the engine's whole answer is said again as a stream, and that in the client's dialect.

    Without a translation that is Chat Completions.
    """

    def __init__(self, translation: WayBack | None) -> None:
        self._translation = translation
        self._body = bytearray()

    @property
    def failure(self) -> str:
        """See `WayBack.failure`."""
        return "" if self._translation is None else self._translation.failure

    def feed(self, data: bytes) -> bytes:
        """See `WayBack.feed`. There is nothing to say before the last."""
        if len(self._body) <= ANSWER_BYTES_MAX:
            self._body += data
        return b""

    def end(self) -> bytes:
        """See `WayBack.end`.

        Raises:
            UnfitAnswerError: the engine sent no answer, or one that is too long.
        """
        if len(self._body) > ANSWER_BYTES_MAX:
            raise UnfitAnswerError("its answer is no event stream, and too long to be made one")
        events = in_pieces(bytes(self._body))
        if self._translation is None:
            return events
        return self._translation.feed(events) + self._translation.end()

    def error(self, status: int, body: bytes) -> bytes:
        """See `WayBack.error`."""
        return body if self._translation is None else self._translation.error(status, body)

    def call_ids(self) -> Sequence[ToolCallId]:
        """See `WayBack.call_ids`."""
        if self._translation is None:
            return observe_body(bytes(self._body)).tool_calls
        return self._translation.call_ids()


def way_back(
    translation: WayBack | None, assembles: Assembles | None, *, wants_stream: bool, is_stream: bool
) -> WayBack | None:
    """Return how an answer becomes the client's; None where it is that as it comes.

    Args:
        translation: how it does where it comes as the client wants it.
        assembles: what puts it together where the engine was asked for a stream and the client wants none.
        wants_stream: whether the client wants a stream.
        is_stream: whether the engine's answer is one.
    """
    if wants_stream == is_stream:
        return translation
    if wants_stream:
        return None if translation is None else PiecedTranslation(translation)
    if translation is None:
        return None if assembles is None else assembles()
    return AssembledTranslation((assembles or ChatAssembly)(), translation)
