"""Counting the tokens of a Gemini request: `:countTokens`."""

import msgspec

from luftpause.core.dialects.dialect import Peek
from luftpause.core.dialects.failures import Failure
from luftpause.core.dialects.gemini.errors import engine_refusal, error_body
from luftpause.core.dialects.gemini.paths import Called, counted_model
from luftpause.core.dialects.gemini.request import read_counted
from luftpause.core.dialects.gemini.to_chat import chat_request
from luftpause.core.dialects.request import read_members
from luftpause.core.dialects.single_request import Sent, SingleRequest
from luftpause.core.dialects.token_counts import CountBack, counts_at
from luftpause.core.model.replicas import Placement
from luftpause.core.model.turns import TurnShape


class GeminiCountTokens(SingleRequest):
    """A `Dialect`: of the one question that Gemini's clients ask beside their conversations."""

    def __init__(self) -> None:
        super().__init__("gemini_count_tokens")

    def peek(self, path: str, body: bytes, *, with_identity: bool) -> Peek:
        """See `Dialect.peek`. The path says which model."""
        del with_identity
        model = counted_model(path)
        read_members(body, (), "contents")
        return Peek(model=model, stream=False, shape=TurnShape.ERRAND)

    def sent(self, target: bytes, body: bytes, placement: Placement, *, speaks: bool) -> Sent:
        """See `SingleRequest.sent`."""
        del target, speaks
        called = Called(placement.model, stream=False)
        chat = {**chat_request(called, read_counted(body)), "max_tokens": 1}
        back = CountBack(_written, engine_refusal)
        return Sent(target=counts_at(placement.engine), body=msgspec.json.encode(chat), back=back)

    def error(self, failure: Failure) -> bytes:
        """See `Dialect.error`."""
        return error_body(failure.status, failure.message)


def _written(count: int) -> bytes:
    return msgspec.json.encode({"totalTokens": count})
