"""The decisions port over the LLM door's `/v1/decide`.

With labels the door answers with their probabilities by name. Without, it hands on a classifier's answer in vLLM's
shape, which names the likeliest label alone: the other probabilities have no names there.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from luftpause.adapters.turns_http.reply import error_text
from luftpause.adapters.turns_http.request import authorization
from luftpause.core.model.ids import PrincipalId
from luftpause.core.model.replicas import Endpoint
from luftpause.ports.decisions import Decision, DecisionFailedError, DecisionRequest
from luftpause.ports.engines import EngineBrokeError, EngineRequest, Engines, EngineUnreachableError

ANSWER_BYTES_MAX: Final = 1 << 20


class _Labelled(msgspec.Struct):
    label: str
    probabilities: dict[str, float]
    unscored: list[str] = []
    model: str = ""


class _Class(msgspec.Struct):
    label: str
    probs: list[float] = []


class _Classified(msgspec.Struct):
    data: list[_Class]
    model: str = ""


class HttpDecisions:
    """Asks `endpoint`, the dataplane's base URL, presenting the token of whoever asks, if any."""

    def __init__(
        self,
        engines: Engines,
        endpoint: Endpoint,
        tokens: Mapping[PrincipalId, str] | None = None,
        *,
        timeout_s: float = 600.0,
    ) -> None:
        self._engines = engines
        self._endpoint = endpoint
        self._tokens = tokens or {}
        self._timeout_s = timeout_s

    async def decide(self, request: DecisionRequest) -> Decision:
        """Have a text labelled; see the port."""
        try:
            async with asyncio.timeout(self._timeout_s):
                status, answer = await self._ask(request)
        except (EngineUnreachableError, EngineBrokeError) as error:
            raise DecisionFailedError(f"the LLM door did not answer: {error}") from error
        except TimeoutError as error:
            raise DecisionFailedError(f"the LLM door did not answer within {self._timeout_s:g} s") from error
        if status != 200:
            raise DecisionFailedError(error_text(answer) or f"the LLM door answered with status {status}")
        try:
            return _classified(answer) if request.labels is None else _labelled(answer)
        except msgspec.MsgspecError as error:
            raise DecisionFailedError(f"the LLM door's answer cannot be read: {error}") from error

    async def _ask(self, request: DecisionRequest) -> tuple[int, bytes]:
        body: dict[str, object] = {"input": request.input}
        if request.labels is not None:
            body["labels"] = list(request.labels)
        if request.model is not None:
            body["model"] = request.model
        wire = EngineRequest(
            method=b"POST",
            path=b"/v1/decide",
            headers=[
                (b"content-type", b"application/json"),
                (b"x-luftpause-class", request.service_class.value.encode()),
                (b"x-luftpause-caller", request.caller.encode()),
                *(() if request.trace is None else ((b"traceparent", request.trace.header.encode()),)),
                *authorization(self._tokens.get(request.principal, "")),
            ],
            body=msgspec.json.encode(body),
        )
        exchange = await self._engines.send(self._endpoint, wire)
        try:
            answer = b""
            while len(answer) < ANSWER_BYTES_MAX and (piece := await exchange.read()):
                answer += piece
            return exchange.status, answer
        finally:
            exchange.close()


def _labelled(answer: bytes) -> Decision:
    read = msgspec.json.decode(answer, type=_Labelled)
    return Decision(label=read.label, probabilities=read.probabilities, unscored=read.unscored, model=read.model)


def _classified(answer: bytes) -> Decision:
    read = msgspec.json.decode(answer, type=_Classified)
    if not read.data:
        raise DecisionFailedError("the classifier named no label")
    best = read.data[0]
    return Decision(
        label=best.label, probabilities={best.label: max(best.probs)} if best.probs else {}, model=read.model
    )
