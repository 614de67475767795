"""`/metrics` of the fake engine, under the names that vLLM, SGLang and llama-server use. Pure."""

from typing import assert_never

from luftpause.testkit.fake_engine.model import Gauges
from luftpause.testkit.fake_engine.settings import MetricsStyle

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BLOCK_TOKENS = 16
_Metric = tuple[str, str, float]


def render_metrics(style: MetricsStyle, gauges: Gauges, model: str) -> str:
    """Return the page in Prometheus text; "" for NONE."""
    match style:
        case MetricsStyle.VLLM:
            labels = f'engine="0",model_name="{_escaped(model)}"'
            blocks = f'{labels},block_size="{BLOCK_TOKENS}",num_gpu_blocks="{gauges.kv_tokens // BLOCK_TOKENS}"'
            info = f"# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{{{blocks}}} 1.0\n"
            return _page("vllm:", labels, _vllm(gauges)) + info
        case MetricsStyle.SGLANG:
            return _page("sglang:", f'model_name="{_escaped(model)}",engine_type="unified"', _sglang(gauges))
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
        ("kv_cache_usage_perc", "gauge", gauges.kv_used / gauges.kv_tokens),
        ("num_preemptions_total", "counter", 0),
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
        ("token_usage", "gauge", gauges.kv_used / gauges.kv_tokens),
        ("num_used_tokens", "gauge", gauges.kv_used),
        ("max_total_num_tokens", "gauge", gauges.kv_tokens),
        ("cache_hit_rate", "gauge", gauges.cached_tokens / max(1, gauges.prompt_tokens)),
        ("num_retracted_requests_total", "counter", 0),
        ("prompt_tokens_total", "counter", gauges.prompt_tokens),
        ("cached_tokens_total", "counter", gauges.cached_tokens),
        ("generation_tokens_total", "counter", gauges.generated_tokens),
    ]


def _llama_cpp(gauges: Gauges) -> list[_Metric]:
    return [
        ("requests_processing", "gauge", gauges.running),
        ("requests_deferred", "gauge", gauges.waiting),
        ("prompt_tokens_total", "counter", gauges.prompt_tokens - gauges.cached_tokens),
        ("prompt_tokens_cached_total", "counter", gauges.cached_tokens),
        ("tokens_predicted_total", "counter", gauges.generated_tokens),
    ]


def _page(prefix: str, labels: str, metrics: list[_Metric]) -> str:
    braces = f"{{{labels}}}" if labels else ""
    return "".join(
        f"# TYPE {prefix}{name} {kind}\n{prefix}{name}{braces} {float(value)!r}\n" for name, kind, value in metrics
    )


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
