"""An `Engines` that answers from a script."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineRequest, Header, Sink


@dataclass
class ScriptedExchange:
    """Gives out its pieces; an exception among them is raised in its turn."""

    status: int
    pieces: list[bytes | Exception]
    headers: Sequence[Header] = ()
    closed: int = 0

    async def read(self) -> bytes:
        piece = self.pieces.pop(0) if self.pieces else b""
        if isinstance(piece, Exception):
            raise piece
        return piece

    async def pour(self, sink: Sink) -> None:
        raise AssertionError("nobody pours this answer")

    def finish(self) -> bool:
        raise NotImplementedError

    def close(self) -> None:
        self.closed += 1


@dataclass
class ScriptedEngines:
    """Answers each request with the next exchange, or raises it."""

    script: list[ScriptedExchange | Exception]
    requests: list[EngineRequest] = field(default_factory=list)

    async def send(self, endpoint: Endpoint, request: EngineRequest) -> ScriptedExchange:
        self.requests.append(request)
        answer = self.script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        pass
