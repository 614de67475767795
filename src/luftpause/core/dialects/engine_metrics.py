"""What an engine's Prometheus text says of its load: requests it runs, requests it queues.

Knows the metric names of SGLang, vLLM and llama-server, and no way to fetch them. Total: whatever the text is, the
answer is a value; a sample that makes no sense is left out.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from luftpause.core.model.replicas import EngineKind, Load

REQUESTS_MAX = 1_000_000_000
"""No engine has more; larger reports are cut to this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    engine: EngineKind
    prefix: str
    running: str = ""
    waiting: str = ""
    kv_tokens: str = ""
    preemptions: str = ""
    prompt_tokens: str = "prompt_tokens_total"


# Some exporters write `_` for `:`, so names are compared with `_`.
_ENGINES = (
    _Names(
        engine=EngineKind.SGLANG,
        prefix="sglang_",
        running="num_running_reqs",
        waiting="num_queue_reqs",
        kv_tokens="max_total_num_tokens",
        preemptions="num_retracted_requests_total",
    ),
    _Names(
        engine=EngineKind.VLLM,
        prefix="vllm_",
        running="num_requests_running",
        waiting="num_requests_waiting",
        kv_tokens="cache_config_info",
        preemptions="num_preemptions_total",
    ),
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
    (?P<labels> \{ [^"{}]*+ (?: "[^"\\]*+ (?: \\. [^"\\]*+ )*" [^"{}]*+ )* \} )? [ \t]*+
    (?P<value> [^ \t{}]++ )
    """,
    re.VERBOSE,
)

_RANK = re.compile(r'[{, \t](model_name|dp_rank|engine)[ \t]*+=[ \t]*+"([^"\\]*+(?:\\.[^"\\]*+)*)"')
"""The labels by which data-parallel ranks differ: SGLang's `dp_rank`, vLLM's `engine`."""

_CACHE_CONFIG = "cache_config_info"
_BLOCKS = re.compile(r'[{, \t](block_size|num_gpu_blocks)[ \t]*+=[ \t]*+"([0-9]{1,12})"')
"""vLLM tells the size of its cache in labels: so many blocks of so many tokens."""

_Rank = tuple[tuple[str, str], ...]


def parse_load(text: str) -> Load | None:
    """Return the load that the text reports, None when it reports none.

    Each data-parallel rank has series of its own; those of a rank that differ in other labels, such as SGLang's
    `tp_rank`, tell of the same requests, and the largest counts. What runs is the sum over the ranks; what waits is the
    longest queue, since a turn may be sent to any rank. KV memory is as many times the smallest one as there are ranks:
    turns are spread evenly, so the smallest is full first.
    """
    seen: dict[tuple[EngineKind, str], dict[_Rank, float]] = {}
    for sample in _samples(text):
        names = sample.names
        if sample.metric in (names.running, names.waiting, names.kv_tokens, names.preemptions, names.prompt_tokens):
            value = _blocks(sample.labels) if sample.metric == _CACHE_CONFIG else sample.value
            ranks = seen.setdefault((names.engine, sample.metric), {})
            rank = tuple(sorted(_RANK.findall(sample.labels)))
            ranks[rank] = max(value, ranks.get(rank, 0.0))
    for names in _ENGINES:
        running, waiting = seen.get((names.engine, names.running)), seen.get((names.engine, names.waiting))
        if running is not None and waiting is not None:
            tokens, preempted = seen.get((names.engine, names.kv_tokens)), seen.get((names.engine, names.preemptions))
            read = seen.get((names.engine, names.prompt_tokens))
            return Load(
                running=_requests(sum(running.values())),
                waiting=_requests(max(waiting.values())),
                kv_tokens=None if tokens is None else _requests(min(tokens.values()) * len(tokens)) or None,
                preemptions=None if preempted is None else _requests(sum(preempted.values())),
                prompt_tokens=None if read is None else _requests(sum(read.values())),
            )
    return None


def recognise(text: str) -> EngineKind | None:
    """Return which engine the text comes from, None when it is none that we know."""
    found = {sample.names.engine for sample in _samples(text)}
    return next((names.engine for names in _ENGINES if names.engine in found), None)


class _Sample(NamedTuple):
    """One usable line of a known engine. `metric` is the name below the engine's prefix, `labels` still in braces."""

    names: _Names
    metric: str
    labels: str
    value: float


def _samples(text: str) -> Iterator[_Sample]:
    for line in text.split("\n"):
        start = line.lstrip(" \t")[:10].replace(":", "_")
        names = next((names for names in _ENGINES if start.startswith(names.prefix)), None)
        found = None if names is None else _SAMPLE.match(line)
        if names is None or found is None:
            continue
        value = _number(found["value"].rstrip("\r"))
        if value is not None:
            metric = found["name"].replace(":", "_").removeprefix(names.prefix)
            yield _Sample(names, metric, found["labels"] or "", value)


def _blocks(labels: str) -> float:
    """Return how many tokens fit into the cache that these labels describe; 0 where they do not say."""
    found = dict(_BLOCKS.findall(labels))
    return float(int(found.get("block_size", 0)) * int(found.get("num_gpu_blocks", 0)))


def _number(word: str) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _requests(value: float) -> int:
    """Return a count, rounded up: half a request still occupies the engine."""
    return math.ceil(min(value, REQUESTS_MAX))
