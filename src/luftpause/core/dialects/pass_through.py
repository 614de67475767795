"""Requests that go to an engine at the client's own path, byte for byte, and whose answers come back the same way.

What is known of them is which model they name, and how they stand to the engine's batch.
"""

from luftpause.core.dialects.dialect import Peek
from luftpause.core.dialects.request import model_in, read_members, stream_in
from luftpause.core.dialects.single_request import Sent, SingleRequest
from luftpause.core.model.ids import ModelName
from luftpause.core.model.replicas import Placement, ReplicaKind
from luftpause.core.model.turns import TurnShape


class PassThrough(SingleRequest):
    """A `Dialect` of requests of one kind.

    Args:
        name: what people call them.
        kind: which replicas serve them; None: single-pass, if any such replica serves the model, else generative.
        shape: whether they wait for room.
        needs_model: whether a request without a model is refused; else the only model that is served is meant.
    """

    def __init__(self, name: str, *, kind: ReplicaKind | None, shape: TurnShape, needs_model: bool) -> None:
        super().__init__(name)
        self._kind = kind
        self._shape = shape
        self._needs_model = needs_model

    def peek(self, path: str, body: bytes, *, with_identity: bool) -> Peek:
        """See `Dialect.peek`."""
        del path, with_identity
        members = read_members(body, _WANTED, "input")
        is_open = not self._needs_model and members.get("model") is None
        model = ModelName("") if is_open else model_in(members)
        return Peek(model=model, stream=stream_in(members), kind=self._kind, shape=self._shape)

    def sent(self, target: bytes, body: bytes, placement: Placement, *, speaks: bool) -> Sent:
        """See `SingleRequest.sent`."""
        del placement, speaks
        return Sent(target=target, body=body)


_WANTED = ("model", "stream")
