"""Whether an engine takes priorities, and which way round, by what it tells of how it was started.

SGLang tells it to everybody, vLLM only where it runs in its development mode. What does not tell takes none: sent to an
engine that has them switched off, a priority may end its request. Total: whatever the text is, the answer is a value.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from luftpause.core.model.replicas import EngineKind, Priorities

PATHS: Final[Mapping[EngineKind, str]] = {
    EngineKind.SGLANG: "/get_server_info",
    EngineKind.VLLM: "/server_info?config_format=json",
}
"""Where an engine tells how it was started."""


class _SGLang(msgspec.Struct, frozen=True):
    enable_priority_scheduling: bool = False
    schedule_low_priority_values_first: bool = False


class _Scheduler(msgspec.Struct, frozen=True):
    policy: str = ""


class _Config(msgspec.Struct, frozen=True):
    scheduler_config: _Scheduler = _Scheduler()


class _VLLM(msgspec.Struct, frozen=True):
    vllm_config: _Config = _Config()


def priorities_in(engine: EngineKind, text: str) -> Priorities | None:
    """Return in which order an engine of a kind takes priorities; None where it takes none, as far as it tells."""
    try:
        if engine is EngineKind.SGLANG:
            told = msgspec.json.decode(text, type=_SGLang)
            if not told.enable_priority_scheduling:
                return None
            return Priorities.LOWER_FIRST if told.schedule_low_priority_values_first else Priorities.HIGHER_FIRST
        if engine is EngineKind.VLLM:
            policy = msgspec.json.decode(text, type=_VLLM).vllm_config.scheduler_config.policy
            return Priorities.LOWER_FIRST if policy == "priority" else None
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
    return None
