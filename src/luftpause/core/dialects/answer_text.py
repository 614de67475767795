"""The text of an answer as it passes, for recognising the conversation that goes on from it.

Which members of a document hold text is for each dialect to say.
"""

from collections.abc import Callable

from luftpause.core.dialects.said import TEXT_CHARS_MAX
from luftpause.core.dialects.sse import EventCutter, data_of, split_events


class AnswerText:
    """Collects the text of an answer.

    Args:
        text_in: returns the text of a document: of a whole answer, or of one event of a stream.
        stream: whether it comes as server-sent events.
    """

    def __init__(self, text_in: Callable[[bytes], str], *, stream: bool) -> None:
        self._text_in = text_in
        self._cutter = EventCutter() if stream else None
        self._texts: list[str] = []
        self._size = 0
        self._body: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Take the next piece of the answer, cut anywhere."""
        if self._size > TEXT_CHARS_MAX:
            return
        if self._cutter is None:
            self._size += len(data)
            self._body.append(data)
        else:
            self._take_events(self._cutter.feed(data))

    def text(self) -> str | None:
        """Return the text so far; None where it is too long to identify anything."""
        if self._size > TEXT_CHARS_MAX:
            return None
        if self._cutter is None:
            return self._text_in(b"".join(self._body))
        return "".join([*self._texts, *map(self._text_in, map(data_of, split_events(self._cutter.rest())))])

    def _take_events(self, block: bytes) -> None:
        for event in split_events(block):
            text = self._text_in(data_of(event))
            if text:
                self._texts.append(text)
                self._size += len(text)
