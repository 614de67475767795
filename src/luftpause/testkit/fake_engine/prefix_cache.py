"""The prefix cache of the engine model: which conversation prefixes still have their KV, in tokens.

A prompt is a chain of pieces (one per message); a piece's name stands for it and all before it. The least recently
used piece that nothing running needs goes first. Touching a chain from its end to its root keeps every piece
fresher than those that build on it, so what goes first is always the end of a chain. Decides nothing about requests.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """One message of a prompt: `prefix` names it together with all before it; `tokens` is its own length."""

    prefix: str
    tokens: int


class PrefixCache:
    """Pieces kept, least recently used first, and which of them running requests have pinned."""

    def __init__(self) -> None:
        self._tokens_by_prefix: OrderedDict[str, int] = OrderedDict()
        self._pins: dict[str, int] = {}
        self._tokens = 0

    @property
    def tokens(self) -> int:
        """Tokens of all pieces kept, pinned ones included."""
        return self._tokens

    def matched(self, prompt: Sequence[Piece]) -> int:
        """Return how many leading pieces of the prompt are kept."""
        for count, piece in enumerate(prompt):
            if piece.prefix not in self._tokens_by_prefix:
                return count
        return len(prompt)

    def keep(self, chain: Sequence[Piece]) -> None:
        """Keep every piece of a chain that is not kept yet, and make the whole chain the freshest."""
        for piece in reversed(chain):
            if piece.prefix not in self._tokens_by_prefix:
                self._tokens_by_prefix[piece.prefix] = piece.tokens
                self._tokens += piece.tokens
            self._tokens_by_prefix.move_to_end(piece.prefix)

    def pin(self, chain: Sequence[Piece]) -> None:
        """Protect kept pieces from eviction until as many `unpin`s."""
        for piece in chain:
            assert piece.prefix in self._tokens_by_prefix
            self._pins[piece.prefix] = self._pins.get(piece.prefix, 0) + 1

    def unpin(self, chain: Sequence[Piece]) -> None:
        """Undo one `pin`."""
        for piece in chain:
            left = self._pins[piece.prefix] - 1
            if left:
                self._pins[piece.prefix] = left
            else:
                del self._pins[piece.prefix]

    def shrink_to(self, tokens: int) -> bool:
        """Evict until at most `tokens` are kept; False, and as much evicted as could be, when pins prevent it."""
        for prefix in tuple(self._tokens_by_prefix):
            if self._tokens <= tokens:
                break
            if prefix not in self._pins:
                self._tokens -= self._tokens_by_prefix.pop(prefix)
        return self._tokens <= tokens
