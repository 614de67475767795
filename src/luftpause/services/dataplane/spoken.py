"""Which wire formats an engine speaks beside Chat Completions: as declared, or found out when one is first wanted.

An engine is sent an empty object. One that speaks the format says what is missing in it, one that does not knows no
such path, and nothing is generated. An engine that nobody addresses in another format is never asked. All turns that
want to know wait for one question, which goes on when one of them leaves.
"""

import asyncio
import time
from collections import OrderedDict
from typing import Final, TypeAlias

from luftpause.core.model.replicas import Endpoint, EngineKind, Placement
from luftpause.ports.engines import EngineBrokeError, EngineRequest, Engines, EngineUnreachableError

COUNTS: Final = "count_tokens"
PATHS: Final = {"messages": b"/v1/messages", "responses": b"/v1/responses", COUNTS: b"/v1/messages/count_tokens"}
"""The wire formats that engines are known to speak, and where."""
ASK_S: Final = 2.0
"""The longest that a turn waits for the answer; without one it is translated, which is right in any case."""
MEMORY_S: Final = 300.0
"""An engine is asked again after this: another one may have taken its place unseen."""
UNSURE_S: Final = 10.0
"""An engine that did not say is asked again after this: else each turn would wait for one that never does."""
ENTRIES_MAX: Final = 4096

_DECLARED_AS: Final = {COUNTS: "messages"}
"""Some engines answer Messages and do not count; one that is declared to speak Messages is taken at its word."""
_BADLY_SPOKEN: Final = {EngineKind.LLAMA_CPP: frozenset({"responses"})}
"""llama-server (b11549) drops namespace and custom tools silently, calls a cut answer whole and counts no events."""

_REFUSALS: Final = frozenset((400, 413, 415, 422, 500))
"""How engines were seen to refuse an empty object where they speak the format; a 200 is no answer to one."""
_NOTHING_THERE: Final = frozenset((404, 405, 501))

_Key: TypeAlias = tuple[str, str]
"""An engine's URL, and the name of a dialect."""


class Spoken:
    """Remembers what engines speak. It must run on the event loop."""

    def __init__(
        self, engines: Engines, *, ask_s: float = ASK_S, memory_s: float = MEMORY_S, unsure_s: float = UNSURE_S
    ) -> None:
        self._engines = engines
        self._ask_s = ask_s
        self._memory_s = memory_s
        self._unsure_s = unsure_s
        self._known: OrderedDict[_Key, tuple[bool, int, float]] = OrderedDict()
        self._asking: dict[_Key, asyncio.Task[bool]] = {}

    async def at(self, placement: Placement, dialect: str) -> bool:
        """Say whether the engine of a placement speaks a dialect, given by its name."""
        if placement.dialects is not None:
            return _DECLARED_AS.get(dialect, dialect) in placement.dialects
        if dialect not in PATHS or dialect in _BADLY_SPOKEN.get(placement.engine, ()):
            return False
        key = placement.endpoint.url, dialect
        speaks, life, until = self._known.get(key, (False, 0, 0.0))
        if life == placement.life and time.monotonic() < until:
            return speaks
        asking = self._asking.get(key)
        if asking is None:
            asking = asyncio.create_task(self._find_out(key, placement), name="what an engine speaks")
            self._asking[key] = asking
            asking.add_done_callback(lambda _: self._asking.pop(key, None))
        return await asyncio.shield(asking)

    def answered(self, placement: Placement, dialect: str, status: int) -> None:
        """Take note of how an engine answered a turn in a dialect of its own: it may speak it no longer."""
        if status in _NOTHING_THERE:
            self._known.pop((placement.endpoint.url, dialect), None)

    def forget(self, placement: Placement) -> None:
        """Forget what an engine speaks: it failed, and may come back as another one."""
        for dialect in PATHS:
            self._known.pop((placement.endpoint.url, dialect), None)

    async def close(self) -> None:
        """Ask no more."""
        asking = [*self._asking.values()]
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    async def _find_out(self, key: _Key, placement: Placement) -> bool:
        answer = await self._ask(placement.endpoint, PATHS[key[1]])
        memory_s = self._unsure_s if answer is None else self._memory_s
        self._known[key] = answer is True, placement.life, time.monotonic() + memory_s
        self._known.move_to_end(key)
        if len(self._known) > ENTRIES_MAX:
            self._known.popitem(last=False)
        return answer is True

    async def _ask(self, endpoint: Endpoint, path: bytes) -> bool | None:
        """Return whether an engine knows a path; None when it does not say."""
        headers = ((b"content-type", b"application/json"),)
        request = EngineRequest(method=b"POST", path=path, headers=headers, body=b"{}")
        try:
            async with asyncio.timeout(self._ask_s):
                exchange = await self._engines.send(endpoint, request)
        except (TimeoutError, EngineUnreachableError, EngineBrokeError):
            return None
        status = exchange.status
        exchange.close()
        if status in _REFUSALS:
            return True
        return False if status in _NOTHING_THERE or status < 300 else None
