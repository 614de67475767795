"""The ids of tool calls in an answer that is said in other words: what its client is given, and will echo.

An engine's own id is the client's, once. Where it gives none, or one that another call of the answer has, one is made
up: a client could not tell its results apart, and nobody the run that they come back to.
"""

from hashlib import blake2b

from luftpause.core.model.ids import ToolCallId

DIGEST_BYTES = 12


class CallIds:
    """Gives out the ids of one answer.

    Args:
        prefix: what made-up ids begin with, as the dialect's clients know it.
        turn: what no other turn is called, so that none has the same made-up ids, which are digests.
    """

    __slots__ = ("_given", "_prefix", "_turn")

    def __init__(self, prefix: str, turn: str) -> None:
        self._prefix = prefix
        self._turn = turn
        self._given: dict[ToolCallId, None] = {}

    def given(self) -> tuple[ToolCallId, ...]:
        """Return the ids that were given out, in order."""
        return tuple(self._given)

    def give(self, engines: str) -> str:
        """Return the id of the next call; `engines`: what the engine calls it, empty where it does not say."""
        call_id = ToolCallId(engines)
        if not call_id or call_id in self._given:
            call_id = ToolCallId(self._prefix + self._digest(str(len(self._given))))
        self._given[call_id] = None
        return call_id

    def answers_name(self) -> str:
        """Return what the answer itself is called where its engine does not say: no other turn's is called so."""
        return self._digest("answer")

    def _digest(self, of: str) -> str:
        return blake2b(f"{self._turn} {of}".encode(), digest_size=DIGEST_BYTES).hexdigest()
