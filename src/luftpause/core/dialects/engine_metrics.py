"""What an engine's Prometheus text says of its load: requests it runs, requests it queues.

Knows the metric names of SGLang, vLLM and llama-server, and no way to fetch them. Total: whatever the text is, the
answer is a value; a sample that makes no sense is left out.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from luftpause.core.model.replicas import EngineKind, Load

REQUESTS_MAX = 1_000_000_000
"""No engine has more; larger reports are cut to this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    engine: EngineKind
    prefix: str
    running: str = ""
    waiting: str = ""


# Some exporters write `_` for `:`, so names are compared with `_`.
_ENGINES = (
    _Names(engine=EngineKind.SGLANG, prefix="sglang_", running="num_running_reqs", waiting="num_queue_reqs"),
    _Names(engine=EngineKind.VLLM, prefix="vllm_", running="num_requests_running", waiting="num_requests_waiting"),
    _Names(
        engine=EngineKind.LLAMA_CPP,
        prefix="llamacpp_",
        running="requests_processing",
        waiting="requests_deferred",
    ),
    _Names(engine=EngineKind.ROUTER, prefix="smg_"),
)

_SAMPLE = re.compile(
    r"""
    [ \t]*+ (?P<name> [A-Za-z_:][A-Za-z0-9_:]*+ ) [ \t]*+
    (?: \{ (?: [^"{}] | "(?: [^"\\] | \\. )*+" )*+ \} )?+ [ \t]*+
    (?P<value> [^ \t{}]++ )
    """,
    re.VERBOSE,
)


def parse_load(text: str) -> Load | None:
    """Return the load that the text reports, None when it reports none.

    Each data-parallel rank has a series of its own. What runs is their sum; what waits is the longest queue, since a
    turn may be sent to any rank.
    """
    running: dict[EngineKind, list[float]] = {}
    waiting: dict[EngineKind, list[float]] = {}
    for names, metric, value in _samples(text):
        if metric == names.running:
            running.setdefault(names.engine, []).append(value)
        elif metric == names.waiting:
            waiting.setdefault(names.engine, []).append(value)
    for names in _ENGINES:
        if names.engine in running and names.engine in waiting:
            return Load(running=_requests(sum(running[names.engine])), waiting=_requests(max(waiting[names.engine])))
    return None


def recognise(text: str) -> EngineKind | None:
    """Return which engine the text comes from, None when it is none that we know."""
    found = {names.engine for names, _, _ in _samples(text)}
    return next((names.engine for names in _ENGINES if names.engine in found), None)


def _samples(text: str) -> Iterator[tuple[_Names, str, float]]:
    """Yield engine, name below its prefix, and value of every usable sample of a known engine."""
    for line in text.split("\n"):
        start = line.lstrip(" \t")[:10].replace(":", "_")
        names = next((names for names in _ENGINES if start.startswith(names.prefix)), None)
        found = None if names is None else _SAMPLE.match(line)
        if names is None or found is None:
            continue
        value = _number(found["value"].rstrip("\r"))
        if value is not None:
            yield names, found["name"].replace(":", "_").removeprefix(names.prefix), value


def _number(word: str) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _requests(value: float) -> int:
    """Return a count, rounded up: half a request still occupies the engine."""
    return math.ceil(min(value, REQUESTS_MAX))
