"""Counting the tokens of a request, also at engines that have no `/v1/messages/count_tokens`."""

import msgspec

from luftpause.core.dialects.anthropic_messages.errors import engine_refusal, error_body, error_event
from luftpause.core.dialects.anthropic_messages.request import read_request
from luftpause.core.dialects.anthropic_messages.to_chat import chat_request
from luftpause.core.dialects.dialect import Peek
from luftpause.core.dialects.failures import Failure
from luftpause.core.dialects.request import model_in, read_members
from luftpause.core.dialects.single_request import Sent, SingleRequest
from luftpause.core.dialects.token_counts import CountBack, counts_at
from luftpause.core.model.replicas import Placement
from luftpause.core.model.turns import TurnShape


class CountTokens(SingleRequest):
    """A `Dialect`: of the one question that Messages asks beside its conversations."""

    def __init__(self) -> None:
        super().__init__("count_tokens")

    def peek(self, path: str, body: bytes, *, with_identity: bool) -> Peek:
        """See `Dialect.peek`."""
        del path, with_identity
        return Peek(model=model_in(read_members(body, ("model",), "messages")), stream=False, shape=TurnShape.ERRAND)

    def sent(self, target: bytes, body: bytes, placement: Placement, *, speaks: bool) -> Sent:
        """See `SingleRequest.sent`."""
        if speaks:
            return Sent(target=target, body=body)
        back = CountBack(_written, engine_refusal)
        return Sent(target=counts_at(placement.engine), body=counting_request(body), back=back)

    def error(self, failure: Failure) -> bytes:
        """See `Dialect.error`."""
        return error_body(failure)

    def error_event(self, failure: Failure) -> bytes:
        """See `Dialect.error_event`."""
        return error_event(error_body(failure))


def counting_request(body: bytes) -> bytes:
    """Return the body by which an engine counts the tokens of a request: see `counts_at`.

    Raises:
        BadRequestError: the request cannot be said in Chat Completions.
    """
    request = read_request(body)
    request.stream, request.max_tokens = False, 1
    return msgspec.json.encode(chat_request(request))


def _written(count: int) -> bytes:
    return msgspec.json.encode({"input_tokens": count})
