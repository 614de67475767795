"""How an engine was started, as far as it tells: slots, priorities, and whether it says what came from its cache.

Only what can be read is looked at: no turn is made.
"""

import asyncio
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec

from luftpause.adapters import process_table
from luftpause.assembly.doors import is_loopback
from luftpause.cli.examining.findings import Finding, Says
from luftpause.cli.examining.subject import BODY_BYTES_MAX, Subject
from luftpause.core.model.replicas import EngineKind, ReplicaSpec

SAYS = Says("engines")
_PARALLEL: Final = "OLLAMA_NUM_PARALLEL"


class _Props(msgspec.Struct, frozen=True):
    total_slots: int = 0


class _ServerInfo(msgspec.Struct, frozen=True):
    enable_cache_report: bool = False
    enable_priority_scheduling: bool = False
    max_running_requests: int | None = None


async def flags(subject: Subject, spec: ReplicaSpec, engine: EngineKind) -> list[Finding]:
    """Return what an engine of a kind tells of how it was started."""
    match engine:
        case EngineKind.LLAMA_CPP:
            return await _llama_cpp(subject, spec)
        case EngineKind.SGLANG:
            return await _sglang(subject, spec)
        case EngineKind.VLLM:
            return [
                SAYS.note(
                    f"{spec.replica}: vLLM does not tell whether it takes priorities and says what its cache saved",
                    "vllm serve ... --scheduling-policy priority --enable-prompt-tokens-details",
                )
            ]
        case EngineKind.OLLAMA:
            return [await asyncio.to_thread(_ollama, spec)]
        case EngineKind.AUTO | EngineKind.ROUTER | EngineKind.OPENAI:
            return []


async def _llama_cpp(subject: Subject, spec: ReplicaSpec) -> list[Finding]:
    fetched = await subject.fetcher.fetch(spec.endpoint, "/props", BODY_BYTES_MAX)
    try:
        slots = msgspec.json.decode(fetched.text or "{}", type=_Props).total_slots
    except (msgspec.MsgspecError, RecursionError):
        slots = 0
    if not slots:
        return [SAYS.note(f"{spec.replica} does not tell its slots at /props")]
    if slots == 1:
        what = f"{spec.replica} has one slot: runs take turns on it and drop each other's prefix"
        return [SAYS.warning(what, "llama-server ... --parallel 4")]
    return [SAYS.ok(f"{spec.replica} has {slots} slots")]


async def _sglang(subject: Subject, spec: ReplicaSpec) -> list[Finding]:
    fetched = await subject.fetcher.fetch(spec.endpoint, "/get_server_info", BODY_BYTES_MAX)
    try:
        info = None if fetched.text is None else msgspec.json.decode(fetched.text, type=_ServerInfo)
    except (msgspec.MsgspecError, RecursionError):
        info = None
    if info is None:
        return [SAYS.note(f"{spec.replica} does not tell how it was started at /get_server_info")]
    command = "python -m sglang.launch_server ..."
    found = []
    if info.max_running_requests:
        found.append(SAYS.ok(f"{spec.replica} runs {info.max_running_requests} requests at once"))
    if info.enable_cache_report:
        found.append(SAYS.ok(f"{spec.replica} says what came from its cache (cached_tokens in usage)"))
    else:
        what = f"{spec.replica} does not say what came from its cache: no cached_tokens in usage"
        found.append(SAYS.warning(what, f"{command} --enable-cache-report"))
    if not info.enable_priority_scheduling:
        what = f"{spec.replica} takes no priorities"
        found.append(SAYS.note(what, f"{command} --enable-priority-scheduling"))
    return found


def _ollama(spec: ReplicaSpec) -> Finding:
    """Return how many turns an Ollama takes at once. It tells nobody, but its environment can be seen on one's own."""
    way = f"{_PARALLEL}=4 ollama serve"
    value = (_environment(spec.endpoint.url) or {}).get(_PARALLEL, "")
    if not value:
        what = f"{spec.replica}: whether Ollama has {_PARALLEL} set cannot be seen; without it turns of a model wait"
        return SAYS.note(what, way)
    if value == "1":
        return SAYS.warning(f"{spec.replica}: {_PARALLEL} is 1, so turns of a model wait for each other", way)
    return SAYS.ok(f"{spec.replica}: {_PARALLEL} is {value}")


def _environment(url: str) -> Mapping[str, str] | None:
    parts = urlsplit(url)
    if not parts.hostname or not is_loopback(parts.hostname):
        return None
    pid = process_table.listener_on(parts.port or 80)
    return None if pid is None else process_table.environment_of(pid)
