"""Models of an Ollama that runs already: loaded and unloaded through its API, since it keeps its own processes."""

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from luftpause.core.model.ids import ReplicaId
from luftpause.core.model.replicas import Endpoint, EngineKind, ReplicaSpec
from luftpause.ports.engines import EngineBrokeError, EngineRequest, Engines, EngineUnreachableError
from luftpause.services.launcher.planning import ModelPlan

_OK: Final = 200
_ANSWER_BYTES_MAX: Final = 1 << 20
_SAID_BYTES_MAX: Final = 200
_LOAD_S_MAX: Final = 600.0
_UNLOAD_S_MAX: Final = 30.0
_HEALTH: Final = "/api/version"
_CHECK_S: Final = 0.1
_JSON: Final = ((b"content-type", b"application/json"),)
_FOR_EVER: Final = -1
"""It must not unload by itself what we keep."""


_ONLY_EMBEDS: Final = "does not support generate"
"""What it says of a model that is asked to generate and cannot; it loads such a one for an embedding of nothing."""


class OllamaError(Exception):
    """It does not answer, or refuses; the message says why in one sentence without its full stop."""


class _Refusal(msgspec.Struct, frozen=True):
    error: str = ""


class _Loaded(msgspec.Struct, frozen=True):
    name: str = ""
    model: str = ""
    size: int = 0
    size_vram: int = 0


class _Listing(msgspec.Struct, frozen=True):
    models: list[_Loaded] = []


class OllamaModels:
    """Models of Ollamas, each at its base URL."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines

    def replica(self, plan: ModelPlan) -> ReplicaSpec:
        """Return a loaded model as the scheduler is to know it."""
        return ReplicaSpec(
            replica=ReplicaId(f"{plan.spec.model}-ollama"),
            endpoint=Endpoint(url=plan.ollama_url),
            models=(plan.spec.model,),
            engine=EngineKind.OLLAMA,
            health=_HEALTH,
        )

    async def load(self, url: str, model: str) -> int:
        """Have a model loaded and kept; return what it takes, bytes, 0 where it does not say.

        Raises:
            OllamaError: it was not loaded, or not in time.
        """
        try:
            async with asyncio.timeout(_LOAD_S_MAX):
                await self._begin(url, model)
                return await self._taken(url, model)
        except TimeoutError:
            raise OllamaError(f"Ollama did not load it within {_LOAD_S_MAX:g} s") from None

    async def unload(self, url: str, model: str) -> None:
        """Have a model unloaded, and return once it is gone or Ollama takes too long.

        Raises:
            OllamaError: Ollama does not answer.
        """
        body = {"model": model, "keep_alive": 0, "stream": False}
        await self._ask(url, b"POST", "/api/generate", body)
        try:
            async with asyncio.timeout(_UNLOAD_S_MAX):
                while True:
                    if await self._find(url, model) is None:
                        return
                    await asyncio.sleep(_CHECK_S)
        except TimeoutError:
            raise OllamaError(f"Ollama did not unload it within {_UNLOAD_S_MAX:g} s") from None

    async def _begin(self, url: str, model: str) -> None:
        kept = {"model": model, "keep_alive": _FOR_EVER}
        try:
            await self._ask(url, b"POST", "/api/generate", {**kept, "stream": False})
        except OllamaError as error:
            if _ONLY_EMBEDS not in str(error):
                raise
            await self._ask(url, b"POST", "/api/embed", {**kept, "input": ""})

    async def _taken(self, url: str, model: str) -> int:
        found = await self._find(url, model)
        return 0 if found is None else found.size_vram or found.size

    async def _find(self, url: str, model: str) -> _Loaded | None:
        body = await self._ask(url, b"GET", "/api/ps", None)
        try:
            listing = msgspec.json.decode(body, type=_Listing)
        except msgspec.DecodeError as error:
            raise OllamaError(f"Ollama's list of models is not readable: {error}") from error
        names = {model, f"{model}:latest"}
        return next((each for each in listing.models if {each.name, each.model} & names), None)

    async def _ask(self, url: str, method: bytes, path: str, body: Mapping[str, object] | None) -> bytes:
        content = b"" if body is None else msgspec.json.encode(body)
        request = EngineRequest(method=method, path=path.encode(), headers=_JSON if content else (), body=content)
        try:
            exchange = await self._engines.send(Endpoint(url=url), request)
            try:
                answer = b""
                while piece := await exchange.read():
                    answer += piece
                    if len(answer) > _ANSWER_BYTES_MAX:
                        raise OllamaError("Ollama's answer is too long")
            finally:
                exchange.close()
        except (EngineUnreachableError, EngineBrokeError) as error:
            raise OllamaError(f"Ollama at {url} does not answer: {error}") from error
        if exchange.status != _OK:
            raise OllamaError(f"Ollama answered {exchange.status}: {_said(answer)}")
        return answer


def _said(answer: bytes) -> str:
    """Return why Ollama refuses, in its own words."""
    try:
        said = msgspec.json.decode(answer, type=_Refusal).error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        said = ""
    return said or answer[:_SAID_BYTES_MAX].decode("utf-8", "replace")
