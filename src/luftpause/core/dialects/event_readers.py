"""Who reads the events of a stream, and who picks those that are worth it."""

from typing import Protocol


class Reader(Protocol):
    """Takes in what events say."""

    def take(self, document: bytes) -> bool:
        """Add what a document says, if it can be read.

        Return True where it was read and says nothing that counts, so that one which is the same but for a text may be
        passed over. False is never wrong.
        """
        ...


class Events(Protocol):
    """Picks the events of one stream that may say more than the next piece of text."""

    def tell(self, block: bytes, reader: Reader) -> None:
        """Have the data of a block's events read, in order, those apart that say no more."""
        ...
