"""What llama-server is asked about its slots: how many it has, to write one to a file, and what prompts cost it.

Nothing here may keep a launcher from its work: what does not answer, or not in time, saved nothing.
"""

import asyncio
import logging
import math
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec

from luftpause.core.model.parked_kv import SavedKv, kv_file_name
from luftpause.core.model.replicas import Endpoint
from luftpause.core.scheduling.residency.actions import KvVerdict
from luftpause.ports.engines import EngineBrokeError, EngineRequest, Engines, EngineUnreachableError
from luftpause.services.launcher.kv_files import KvFiles

_LOG: Final = logging.getLogger("luftpause.launcher")
SAVE_S_MAX: Final = 10.0
"""For all slots of an engine together: whoever waits for its room waits for this too."""
ASK_S_MAX: Final = 2.0
_OK: Final = 200
_ANSWER_BYTES_MAX: Final = 4 << 20
_JSON: Final = ((b"content-type", b"application/json"),)
_TOKENS: Final = b"llamacpp:prompt_tokens_total"
_SECONDS: Final = b"llamacpp:prompt_seconds_total"
_SLOTS_MAX: Final = 4096
_PREFILL_S_MAX: Final = 3600.0
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]
"""What an engine says goes on to the scheduler: nothing that cannot be sent or counted."""
_T = TypeVar("_T")


class _AskedInVainError(Exception):
    """Why an engine gave no answer that is of use."""


class _Slot(msgspec.Struct, frozen=True):
    id: _Count


class _Saved(msgspec.Struct, frozen=True):
    n_saved: _Count


class KvSaving:
    """Asks engines to save. `files`: where they write."""

    def __init__(self, engines: Engines, files: KvFiles) -> None:
        self._engines = engines
        self._files = files

    async def slots(self, endpoint: Endpoint) -> int:
        """Return how many slots an engine has; 0 where it does not say."""
        try:
            async with asyncio.timeout(ASK_S_MAX):
                body = await self._ask(endpoint, b"GET", "/slots", None)
            slots = len(_decoded(body, list[_Slot]))
            if slots > _SLOTS_MAX:
                raise _AskedInVainError(f"it has {slots} slots")
            return slots
        except (_AskedInVainError, TimeoutError) as error:
            _LOG.info("engine_parks_nothing", extra={"url": endpoint.url, "why": str(error) or "it took too long"})
            return 0

    async def prefill_s(self, endpoint: Endpoint) -> float:
        """Return what a token of a prompt cost an engine on average, seconds; 0 where it does not say."""
        try:
            async with asyncio.timeout(ASK_S_MAX):
                page = await self._ask(endpoint, b"GET", "/metrics", None)
        except (_AskedInVainError, TimeoutError):
            return 0.0
        tokens, seconds = _figure(page, _TOKENS), _figure(page, _SECONDS)
        cost_s = seconds / tokens if tokens > 0 and seconds > 0 else 0.0
        return cost_s if math.isfinite(cost_s) and cost_s <= _PREFILL_S_MAX else 0.0

    async def save(self, endpoint: Endpoint, verdicts: Sequence[KvVerdict]) -> tuple[SavedKv, ...]:
        """Have slots saved, one after the other, as far as there is time and room; return what is kept."""
        saved: list[SavedKv] = []
        left = [each for each in verdicts if each.file is not None]
        try:
            async with asyncio.timeout(SAVE_S_MAX):
                while left:
                    has_room: bool = await asyncio.to_thread(self._files.has_room)
                    if not has_room:
                        break
                    kept = await self._save_one(endpoint, left.pop(0))
                    if kept is not None:
                        saved.append(kept)
        except TimeoutError:
            _LOG.warning("kv_not_saved", extra={"url": endpoint.url, "why": f"it took longer than {SAVE_S_MAX:g} s"})
        if left:
            _LOG.warning("kv_not_saved", extra={"runs": len(left), "why": "no time or room is left"})
        return tuple(saved)

    async def _save_one(self, endpoint: Endpoint, verdict: KvVerdict) -> SavedKv | None:
        file = verdict.file
        assert file is not None, "only slots with a file are saved"
        began = time.monotonic()
        try:
            is_free: bool = await asyncio.to_thread(self._files.writing, file)
            if not is_free:
                raise _AskedInVainError("something else is in the place of its file")
            path = f"/slots/{verdict.slot}?action=save"
            body = await self._ask(endpoint, b"POST", path, {"filename": kv_file_name(file)})
            tokens = _decoded(body, _Saved).n_saved
            if not tokens:
                raise _AskedInVainError("the slot was empty")
        except _AskedInVainError as error:
            _LOG.warning("kv_not_saved", extra={"run": verdict.run, "slot": verdict.slot, "why": str(error)})
            await asyncio.to_thread(self._files.drop, (file,))
            return None
        took_s = time.monotonic() - began
        return await asyncio.to_thread(self._files.keep, SavedKv(file=file, tokens=tokens, size=0, took_s=took_s))

    async def _ask(self, endpoint: Endpoint, method: bytes, path: str, body: Mapping[str, object] | None) -> bytes:
        content = b"" if body is None else msgspec.json.encode(body)
        request = EngineRequest(method=method, path=path.encode(), headers=_JSON if content else (), body=content)
        try:
            exchange = await self._engines.send(endpoint, request)
            try:
                answer = b""
                while piece := await exchange.read():
                    answer += piece
                    if len(answer) > _ANSWER_BYTES_MAX:
                        raise _AskedInVainError("its answer is too long")
            finally:
                exchange.close()
        except (EngineUnreachableError, EngineBrokeError) as error:
            raise _AskedInVainError(str(error)) from error
        if exchange.status != _OK:
            raise _AskedInVainError(f"it answered {exchange.status}: {answer[:200].decode('utf-8', 'replace')}")
        return answer


def _decoded(body: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise _AskedInVainError(f"its answer is not readable: {error}") from error


def _figure(page: bytes, name: bytes) -> float:
    for line in page.splitlines():
        if line.startswith(name + b" "):
            try:
                return float(line[len(name) + 1 :])
            except ValueError:
                return 0.0
    return 0.0
