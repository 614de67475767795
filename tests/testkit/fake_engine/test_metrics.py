"""The metrics page, read by the Prometheus client's own parser."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from luftpause.testkit.fake_engine.metrics import Gauges, render_metrics
from luftpause.testkit.fake_engine.settings import MetricsStyle

GAUGES = Gauges(
    running=3,
    waiting=2,
    kv_tokens=1600,
    page_tokens=16,
    kv_held=400,
    prompt_tokens=12_345_678,
    cached_tokens=1000,
    prefilled_tokens=12_345_000,
    generated_tokens=50,
    retractions=7,
    prefill_s=617.25,
)


def samples(style: MetricsStyle, model: str = "m") -> dict[str, float]:
    page = render_metrics(style, GAUGES, model)
    return {sample.name: sample.value for family in text_string_to_metric_families(page) for sample in family.samples}


@pytest.mark.parametrize(
    ("style", "running", "waiting", "prompt"),
    [
        (MetricsStyle.VLLM, "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:prompt_tokens_total"),
        (MetricsStyle.SGLANG, "sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:prompt_tokens_total"),
        (MetricsStyle.LLAMA_CPP, "llamacpp:requests_processing", "llamacpp:requests_deferred", ""),
    ],
)
def test_every_style_says_what_runs_and_waits_under_its_own_names(
    style: MetricsStyle, running: str, waiting: str, prompt: str
) -> None:
    found = samples(style)
    assert (found[running], found[waiting]) == (3, 2)
    assert not prompt or found[prompt] == 12_345_678


def test_memory_is_reported_where_the_real_engine_reports_it() -> None:
    assert samples(MetricsStyle.VLLM)["vllm:kv_cache_usage_perc"] == 0.25
    assert samples(MetricsStyle.SGLANG)["sglang:max_total_num_tokens"] == 1600
    assert samples(MetricsStyle.SGLANG)["sglang:num_used_tokens"] == 400
    assert not [name for name in samples(MetricsStyle.LLAMA_CPP) if "kv" in name]


def test_what_was_taken_back_is_counted_where_the_real_engine_counts_it() -> None:
    assert samples(MetricsStyle.VLLM)["vllm:num_preemptions_total"] == 7
    assert samples(MetricsStyle.SGLANG)["sglang:num_retracted_requests_total"] == 7


def test_llama_cpp_counts_the_prompt_tokens_that_it_computed() -> None:
    assert samples(MetricsStyle.LLAMA_CPP)["llamacpp:prompt_tokens_total"] == 12_345_000
    assert samples(MetricsStyle.LLAMA_CPP)["llamacpp:prompt_seconds_total"] == 617.25


@pytest.mark.parametrize(
    ("style", "page", "pages"),
    [(MetricsStyle.VLLM, "block_size", "num_gpu_blocks"), (MetricsStyle.SGLANG, "page_size", "num_pages")],
)
def test_the_size_of_the_memory_is_told_in_pages(style: MetricsStyle, page: str, pages: str) -> None:
    families = text_string_to_metric_families(render_metrics(style, GAUGES, "m"))
    [info] = [sample for family in families for sample in family.samples if sample.name.endswith("cache_config_info")]
    assert (info.labels[page], info.labels[pages]) == ("16", "100")


def test_a_model_name_cannot_break_the_page() -> None:
    page = render_metrics(MetricsStyle.VLLM, GAUGES, 'a"b\\c\nd')
    labels = [s.labels["model_name"] for family in text_string_to_metric_families(page) for s in family.samples]
    assert set(labels) == {'a"b\\c\nd'}


def test_none_has_no_page() -> None:
    assert render_metrics(MetricsStyle.NONE, GAUGES, "m") == ""
