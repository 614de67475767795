"""Requests that are no conversation: each stands alone, and knows by itself what an engine is to be sent for it.

They belong to no run's state. Failures are told in OpenAI's shape, and answers looked at as OpenAI's, unless a kind of
request says otherwise. Sans-IO.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from luftpause.core.dialects.dialect import Peek, WayBack
from luftpause.core.dialects.failures import Failure, openai_error
from luftpause.core.dialects.observe import BodyObserver, Observer, StreamObserver
from luftpause.core.dialects.said import Utterance
from luftpause.core.dialects.sse import EVENT_STREAM
from luftpause.core.model.replicas import Placement

CHAT_PATH: Final = b"/v1/chat/completions"


class Sent(Struct, frozen=True, kw_only=True):
    """What an engine is sent.

    Attributes:
        target: path and query.
        back: how the answer becomes the client's; None where it is the client's as it comes.
    """

    target: bytes
    body: bytes
    back: WayBack | None = None


class SingleRequest(ABC):
    """A `Dialect` of such requests. `name`: see `Dialect.name`; few engines are asked whether they speak it."""

    ping: Final = b": waiting\n\n"
    stream_type: Final = EVENT_STREAM

    def __init__(self, name: str) -> None:
        self.name: Final = name

    @abstractmethod
    def peek(self, path: str, body: bytes, *, with_identity: bool) -> Peek:
        """See `Dialect.peek`. It belongs to no run, so nothing identifies one."""

    @abstractmethod
    def sent(self, target: bytes, body: bytes, placement: Placement, *, speaks: bool) -> Sent:
        """Return what the engine of a placement is sent. `speaks`: whether it is known to take such requests.

        Raises:
            BadRequestError: it cannot be said in words that this engine understands.
        """

    def conversation(self, body: bytes) -> Sequence[Utterance]:
        """See `Dialect.conversation`. It is none."""
        del body
        return ()

    def error(self, failure: Failure) -> bytes:
        """See `Dialect.error`."""
        return openai_error(failure)

    def error_event(self, failure: Failure) -> bytes:
        """See `Dialect.error_event`."""
        return b"data: " + openai_error(failure) + b"\n\n"

    def reworded(self, status: int, body: bytes) -> bytes:
        """See `Dialect.reworded`."""
        del status, body
        return b""

    def observer(self, *, stream: bool) -> Observer:
        """See `Dialect.observer`."""
        return StreamObserver() if stream else BodyObserver()

    def text_in(self, document: bytes) -> str:
        """See `Dialect.text_in`. No conversation goes on from it."""
        del document
        return ""
