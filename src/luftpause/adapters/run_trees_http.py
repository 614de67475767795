"""The run-trees port over a runtime's own HTTP routes: `GET /status` to look, `POST /approvals` to decide."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from luftpause.adapters.turns_http.request import authorization
from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineBrokeError, EngineRequest, Engines, EngineUnreachableError
from luftpause.ports.run_trees import Costs, NotDecidedError, PendingApproval, RuntimeAwayError, RunTree, TreeRun

RUNS_MAX: Final = 200
TIMEOUT_S: Final = 5.0
ANSWER_BYTES_MAX: Final = 4 << 20


class _Origin(msgspec.Struct):
    run: str | None = None


class _Row(msgspec.Struct):
    handle: str
    status: str
    task: str = ""
    phase: str = ""
    model: str = ""
    principal: str = ""
    caller: str = ""
    parent: str | None = None
    origin: _Origin | None = None
    error: str | None = None
    pending_approvals: list[PendingApproval] = []
    own: Costs = Costs()
    subtree: Costs = Costs()


class _Status(msgspec.Struct):
    runs: list[_Row]
    omitted: int = 0


class _Decided(msgspec.Struct):
    decided: bool


class _Error(msgspec.Struct):
    message: str


class _Refused(msgspec.Struct):
    error: _Error


class HttpRunTrees:
    """Asks the runtimes that it was told of, presenting `token` unless it is empty. It is sent to no other address."""

    def __init__(self, engines: Engines, token: str = "") -> None:
        self._engines = engines
        self._token = token
        self._known: list[str] = []

    @property
    def known(self) -> Sequence[str]:
        """See `RunTrees`."""
        return tuple(self._known)

    def know(self, runtime: str) -> None:
        """Take in the base URL of a runtime."""
        url = runtime.rstrip("/")
        if url not in self._known:
            self._known.append(url)

    async def look(self, runtime: str) -> RunTree:
        """See `RunTrees`."""
        status, body = await self._ask(runtime, b"GET", b"/status?limit=%d" % RUNS_MAX, (), b"")
        if status != 200:
            raise RuntimeAwayError(f"it answered with status {status}")
        try:
            seen = msgspec.json.decode(body, type=_Status)
        except msgspec.MsgspecError as error:
            raise RuntimeAwayError(f"it answered something that is no runtime's status: {error}") from error
        return RunTree(runs=[_run(row) for row in seen.runs], omitted=seen.omitted)

    async def decide(self, runtime: str, handle: str, call: str, *, allow: bool) -> bool:
        """See `RunTrees`."""
        body = msgspec.json.encode({"handle": handle, "call": call, "allow": allow})
        headers = ((b"content-type", b"application/json"),)
        status, said = await self._ask(runtime, b"POST", b"/approvals", headers, body)
        try:
            if status == 200:
                return msgspec.json.decode(said, type=_Decided).decided
            refusal = msgspec.json.decode(said, type=_Refused).error.message
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RuntimeAwayError(f"its answer, with status {status}, cannot be read: {error}") from error
        raise NotDecidedError(refusal)

    async def _ask(
        self, runtime: str, method: bytes, path: bytes, headers: Sequence[tuple[bytes, bytes]], body: bytes
    ) -> tuple[int, bytes]:
        assert runtime in self._known, "asked for nothing that was not told"
        wire = EngineRequest(method=method, path=path, headers=[*headers, *authorization(self._token)], body=body)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                exchange = await self._engines.send(Endpoint(url=runtime), wire)
                try:
                    answer = b""
                    while len(answer) < ANSWER_BYTES_MAX and (piece := await exchange.read()):
                        answer += piece
                    return exchange.status, answer
                finally:
                    exchange.close()
        except TimeoutError as error:
            raise RuntimeAwayError(f"it did not answer within {TIMEOUT_S:g} s") from error
        except (EngineUnreachableError, EngineBrokeError) as error:
            raise RuntimeAwayError(str(error)) from error


def _run(row: _Row) -> TreeRun:
    return TreeRun(
        handle=row.handle,
        task=row.task,
        status=row.status,
        phase=row.phase,
        model=row.model,
        principal=row.principal,
        caller=row.caller,
        parent=row.parent,
        above=None if row.origin is None else row.origin.run,
        error=row.error,
        approvals=row.pending_approvals,
        own=row.own,
        subtree=row.subtree,
    )
