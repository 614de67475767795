"""`/tokenize` of the fake engine, in vLLM's shape: made-up but repeatable ids, as many as the prompt counts. Pure."""

import hashlib
from collections.abc import Sequence

import msgspec

from luftpause.testkit.fake_engine.chains import Piece
from luftpause.testkit.fake_engine.conversations import Chat, Message, Tool, pieces, text_pieces

VOCABULARY = 32_000


class Tokenize(msgspec.Struct, frozen=True):
    """The body of a tokenize request: a bare prompt, or the messages and tools of a conversation."""

    model: str
    prompt: str | None = None
    messages: list[Message] | None = None
    tools: list[Tool] | None = None

    def pieces(self) -> Sequence[Piece]:
        """Return what there is to read, as the other endpoints count it."""
        if self.prompt is not None:
            return text_pieces(self.model, self.prompt)
        return pieces(Chat(model=self.model, messages=self.messages or [], tools=self.tools))


def tokenized(prompt: Sequence[Piece], room: int) -> dict[str, object]:
    """Return the answer; `room`: the longest prompt that the engine takes, tokens."""
    ids = [token for piece in prompt for token in _ids(piece)]
    return {"count": len(ids), "max_model_len": room, "tokens": ids, "token_strs": None}


def _ids(piece: Piece) -> Sequence[int]:
    """Ids of a piece depend on it and all before it."""
    seed = int.from_bytes(hashlib.blake2b(piece.prefix.encode(), digest_size=8).digest(), "big")
    return [(seed + number * number) % VOCABULARY for number in range(piece.tokens)]
