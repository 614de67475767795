"""Passes over the events of a stream that say no more than the next piece of text.

Nearly all events of a stream are alike but for one string in them, the text. One that was read and said nothing is
remembered as what stands before that string and what after it, and an event that is made of the same two is not read.
"""

from typing import Final

from luftpause.core.dialects.event_readers import Events, Reader
from luftpause.core.dialects.sse import data_of, split_events

PLAIN_BYTES_MAX: Final = 4096
"""A longer event is not remembered."""
_TRIES: Final = 8
"""So many events of a stream are remembered one after the other. The first one is like no other, so it is not."""
_QUOTE: Final = ord('"')
_LF: Final = ord("\n")
_STRING_ENDS: Final = (b'"}', b'",')


class PlainEvents(Events):
    """Looks through one stream of JSON documents.

    Args:
        text: what stands before the string in which plain events differ: the end of its key with the closing quote, a
            colon, and its opening quote. In a document that can be read, nothing else looks like that.
    """

    __slots__ = ("_after", "_before", "_block_end", "_text", "_tries")

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._tries = _TRIES
        self._before = b""
        self._after = b""
        self._block_end = b""

    def tell(self, block: bytes, reader: Reader) -> None:
        """See `Events.tell`."""
        if self._before and _is_made_of(block, self._before, self._block_end):
            return
        for event in split_events(block):
            if self._before and _is_made_of(event, self._before, self._after):
                continue
            document = data_of(event)
            if document and reader.take(document) and self._tries:
                self._remember(event)

    def _remember(self, event: bytes) -> None:
        """Note what an event is made of that was read and said nothing.

        One that is made of the same differs from it in a text and says as little; or a backslash before a quote makes
        the number of quotes odd that are none of a text's, and it cannot be read.
        """
        self._tries -= 1
        if self._tries == _TRIES - 1 or len(event) > PLAIN_BYTES_MAX or _LF in event:
            return
        at = event.find(self._text)
        start = at + len(self._text)
        end = event.find(b'"', start)
        if at >= 0 and event.startswith(_STRING_ENDS, max(end, start)):
            self._before, self._after = event[:start], event[end:]
            self._block_end = self._after + b"\n\n"


def _is_made_of(event: bytes, before: bytes, after: bytes) -> bool:
    """Say whether an event is these two with a string between them that has no quote in it."""
    inside, end = len(before), len(event) - len(after)
    return end >= inside and event.startswith(before) and event.endswith(after) and _QUOTE not in event[inside:end]
