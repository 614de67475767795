"""Which models the LLM door serves, for sub-agents that name none."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from luftpause.core.model.ids import ModelName
from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineBrokeError, EngineRequest, Engines, EngineUnreachableError

TIMEOUT_S: Final = 5.0
ANSWER_BYTES_MAX: Final = 1 << 20


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


class ServedModels:
    """Asks `endpoint`, the dataplane's base URL, for its models, presenting `token` unless it is empty."""

    def __init__(self, engines: Engines, endpoint: Endpoint, token: str = "") -> None:
        self._engines = engines
        self._endpoint = endpoint
        self._headers = ((b"authorization", b"Bearer " + token.encode()),) if token else ()

    async def __call__(self) -> Sequence[ModelName]:
        """Return the models' names as the door lists them; none while it cannot be asked."""
        request = EngineRequest(method=b"GET", path=b"/v1/models", headers=self._headers, body=b"")
        try:
            async with asyncio.timeout(TIMEOUT_S):
                answer = await self._read(request)
            return [ModelName(model.id) for model in msgspec.json.decode(answer, type=_Models).data]
        except (TimeoutError, EngineUnreachableError, EngineBrokeError, msgspec.MsgspecError):
            return []

    async def _read(self, request: EngineRequest) -> bytes:
        exchange = await self._engines.send(self._endpoint, request)
        try:
            answer = b""
            while len(answer) < ANSWER_BYTES_MAX and (piece := await exchange.read()):
                answer += piece
            return answer
        finally:
            exchange.close()
