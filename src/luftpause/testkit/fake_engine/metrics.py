"""`/metrics` of the fake engine, under the names that vLLM, SGLang and llama-server use. Pure.

Memory in use is, as with the real ones, what running requests need: a kept prefix that nobody needs is as good as free.
"""

from dataclasses import dataclass
from typing import assert_never

from luftpause.testkit.fake_engine.settings import MetricsStyle

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_Metric = tuple[str, str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """What the engine says of itself. The last six are totals since its start.

    Attributes:
        running: requests that run.
        waiting: requests that wait for a place.
        kv_tokens: tokens of memory, all of it.
        page_tokens: tokens of a page of it.
        kv_held: tokens of memory that running requests need.
        prompt_tokens: of prompts whose reply has begun.
        cached_tokens: of these, found in memory.
        prefilled_tokens: of prompts, computed; again what was computed again.
        generated_tokens: of replies.
        retractions: requests taken back for want of memory.
        prefill_s: what the prompts took to compute, seconds.
    """

    running: int
    waiting: int
    kv_tokens: int
    page_tokens: int
    kv_held: int
    prompt_tokens: int
    cached_tokens: int
    prefilled_tokens: int
    generated_tokens: int
    retractions: int
    prefill_s: float


def render_metrics(style: MetricsStyle, gauges: Gauges, model: str) -> str:
    """Return the page in Prometheus text; "" for NONE."""
    pages = gauges.kv_tokens // gauges.page_tokens
    match style:
        case MetricsStyle.VLLM:
            labels = f'engine="0",model_name="{_escaped(model)}"'
            info = f'{labels},block_size="{gauges.page_tokens}",num_gpu_blocks="{pages}"'
            return _page("vllm:", labels, _vllm(gauges)) + _info("vllm:cache_config_info", info)
        case MetricsStyle.SGLANG:
            labels = f'model_name="{_escaped(model)}",engine_type="unified"'
            info = f'{labels},page_size="{gauges.page_tokens}",num_pages="{pages}"'
            return _page("sglang:", labels, _sglang(gauges)) + _info("sglang:cache_config_info", info)
        case MetricsStyle.LLAMA_CPP:
            return _page("llamacpp:", "", _llama_cpp(gauges))
        case MetricsStyle.NONE:
            return ""
        case _:
            assert_never(style)


def _vllm(gauges: Gauges) -> list[_Metric]:
    return [
        ("num_requests_running", "gauge", gauges.running),
        ("num_requests_waiting", "gauge", gauges.waiting),
        ("kv_cache_usage_perc", "gauge", gauges.kv_held / gauges.kv_tokens),
        ("num_preemptions_total", "counter", gauges.retractions),
        ("prefix_cache_queries_total", "counter", gauges.prompt_tokens),
        ("prefix_cache_hits_total", "counter", gauges.cached_tokens),
        ("prompt_tokens_total", "counter", gauges.prompt_tokens),
        ("prompt_tokens_cached_total", "counter", gauges.cached_tokens),
        ("generation_tokens_total", "counter", gauges.generated_tokens),
    ]


def _sglang(gauges: Gauges) -> list[_Metric]:
    return [
        ("num_running_reqs", "gauge", gauges.running),
        ("num_queue_reqs", "gauge", gauges.waiting),
        ("token_usage", "gauge", gauges.kv_held / gauges.kv_tokens),
        ("num_used_tokens", "gauge", gauges.kv_held),
        ("max_total_num_tokens", "gauge", gauges.kv_tokens),
        ("cache_hit_rate", "gauge", gauges.cached_tokens / max(1, gauges.prompt_tokens)),
        ("num_retracted_requests_total", "counter", gauges.retractions),
        ("prompt_tokens_total", "counter", gauges.prompt_tokens),
        ("cached_tokens_total", "counter", gauges.cached_tokens),
        ("generation_tokens_total", "counter", gauges.generated_tokens),
    ]


def _llama_cpp(gauges: Gauges) -> list[_Metric]:
    return [
        ("requests_processing", "gauge", gauges.running),
        ("requests_deferred", "gauge", gauges.waiting),
        ("prompt_tokens_total", "counter", gauges.prefilled_tokens),
        ("prompt_tokens_cached_total", "counter", gauges.cached_tokens),
        ("prompt_seconds_total", "counter", gauges.prefill_s),
        ("tokens_predicted_total", "counter", gauges.generated_tokens),
    ]


def _page(prefix: str, labels: str, metrics: list[_Metric]) -> str:
    braces = f"{{{labels}}}" if labels else ""
    return "".join(
        f"# TYPE {prefix}{name} {kind}\n{prefix}{name}{braces} {float(value)!r}\n" for name, kind, value in metrics
    )


def _info(name: str, labels: str) -> str:
    return f"# TYPE {name} gauge\n{name}{{{labels}}} 1.0\n"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
