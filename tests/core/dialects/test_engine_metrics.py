"""Reading an engine's load from its Prometheus text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.core.dialects.engine_metrics import parse_load, recognise
from luftpause.core.model.replicas import EngineKind, Load

SGLANG = """\
# HELP sglang:num_running_reqs The number of running requests
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="m",tp_rank="0",pp_rank="0"} 7.0
sglang:num_running_reqs_offline_batch{model_name="m"} 99.0
sglang:num_queue_reqs{model_name="m"} 2.0
sglang:token_usage{model_name="m"} 0.28
"""
VLLM = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 5.0
vllm:num_requests_waiting{engine="0",model_name="m"} 0.0
vllm:num_requests_waiting{model_name="m",engine="1"} 4.0
vllm:num_requests_waiting_by_reason{engine="1",model_name="m",reason="capacity"} 100.0
vllm:request_queue_time_seconds_bucket{engine="0",le="0.3",model_name="m"} 12.0
"""
LLAMA = """\
# HELP llamacpp:requests_processing Number of requests processing.
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 4
# HELP llamacpp:requests_deferred Number of requests deferred.
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 6
"""
SGLANG_RANKS = """\
# HELP sglang:num_running_reqs The number of running requests.
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 3.0
sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="1"} 3.0
sglang:num_running_reqs{dp_rank="1",engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 5.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{dp_rank="0",engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 0.0
sglang:num_queue_reqs{dp_rank="0",engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="1"} 0.0
sglang:num_queue_reqs{dp_rank="1",engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 9.0
sglang:num_grammar_queue_reqs{dp_rank="1",engine_type="unified",model_name="m"} 50.0
"""


@pytest.mark.parametrize(
    ("text", "engine", "load"),
    [
        pytest.param(
            SGLANG_RANKS, EngineKind.SGLANG, Load(running=8, waiting=9), id="dp ranks count, tp ranks repeat (case 12)"
        ),
        pytest.param(
            VLLM + VLLM.replace('"m"', '"other"'), EngineKind.VLLM, Load(running=16, waiting=4), id="two models"
        ),
        pytest.param(
            VLLM.replace('"m"', '"x,engine=\\"7\\""'), EngineKind.VLLM, Load(running=8, waiting=4), id="odd names"
        ),
        pytest.param(SGLANG, EngineKind.SGLANG, Load(running=7, waiting=2), id="sglang"),
        pytest.param(VLLM, EngineKind.VLLM, Load(running=8, waiting=4), id="vllm sums ranks, worst queue (case 12)"),
        pytest.param(LLAMA, EngineKind.LLAMA_CPP, Load(running=4, waiting=6), id="llama-server"),
        pytest.param(
            SGLANG.replace("sglang:", "sglang_"), EngineKind.SGLANG, Load(running=7, waiting=2), id="no colons"
        ),
        pytest.param(LLAMA.replace("\n", "\r\n"), EngineKind.LLAMA_CPP, Load(running=4, waiting=6), id="crlf"),
        pytest.param("smg_worker_requests_active 4\n", EngineKind.ROUTER, None, id="router"),
        pytest.param("http_requests_total 4\n", None, None, id="something else"),
        pytest.param("", None, None, id="empty"),
    ],
)
def test_each_engine_is_recognised_and_its_load_read(text: str, engine: EngineKind | None, load: Load | None) -> None:
    assert recognise(text) is engine
    assert parse_load(text) == load


@pytest.mark.parametrize(
    ("running", "expected"),
    [
        ("llamacpp:requests_processing 4e0", 4),
        ("llamacpp:requests_processing 4.000", 4),
        ("llamacpp:requests_processing +4", 4),
        ("llamacpp:requests_processing 3.2", 4),
        ("llamacpp:requests_processing 4 1712345678000", 4),
        ("  llamacpp:requests_processing\t4", 4),
        ("llamacpp:requests_processing{} 4", 4),
        ("llamacpp:requests_processing {} 4", 4),
        ('llamacpp:requests_processing{a="x",b="}{ \\" # 9"} 4 # {} 7', 4),
        ('llamacpp:requests_processing{z="2",a="é "}4', 4),
        ("llamacpp:requests_processing 1e300", 1_000_000_000),
        ("llamacpp:requests_processing NaN\nllamacpp:requests_processing 4", 4),
        ("llamacpp:requests_processing +Inf\nllamacpp:requests_processing 4", 4),
        ("llamacpp:requests_processing -1\nllamacpp:requests_processing 4", 4),
        ("llamacpp:requests_processing many\nllamacpp:requests_processing 4", 4),
        ('llamacpp:requests_processing{a="open\nllamacpp:requests_processing 4', 4),
        ("llamacpp:requests_processing\nllamacpp:requests_processing 4", 4),
        ("# llamacpp:requests_processing 9\nllamacpp:requests_processing 4", 4),
    ],
)
def test_numbers_labels_and_blanks_in_all_their_forms(running: str, expected: int) -> None:
    assert parse_load(f"{running}\nllamacpp:requests_deferred 1\n") == Load(running=expected, waiting=1)


@pytest.mark.parametrize("half", ["llamacpp:requests_processing 4\n", "llamacpp:requests_deferred 4\n"])
def test_half_a_report_is_none(half: str) -> None:
    assert parse_load(half) is None
    assert recognise(half) is EngineKind.LLAMA_CPP


def test_the_parts_of_a_report_come_from_one_engine() -> None:
    assert parse_load("vllm:num_requests_running 4\nllamacpp:requests_deferred 1\n") is None


names = st.sampled_from(
    ["sglang:num_running_reqs", "sglang:num_queue_reqs", "vllm:num_requests_waiting", "llamacpp:requests_deferred"]
)


@given(st.lists(st.tuples(names, st.text(max_size=30)).map("".join) | st.text(max_size=60), max_size=12).map("\n".join))
def test_junk_never_raises(text: str) -> None:
    recognise(text)
    load = parse_load(text)
    assert load is None or (load.running >= 0 and load.waiting >= 0)


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=8),
    st.permutations(["model_name", "engine", "path"]),
    st.text(st.characters(exclude_characters='\\"\n', exclude_categories=["Cs"]), max_size=10),
)
def test_ranks_are_added_and_the_worst_queue_counts_whatever_the_labels(
    ranks: list[tuple[int, int]], labels: list[str], value: str
) -> None:
    lines = []
    for rank, (running, waiting) in enumerate(ranks):
        inside = ",".join(f'{label}="{rank if label == "engine" else value}"' for label in labels)
        lines += [
            f"vllm:num_requests_running{{{inside}}} {running}",
            f"vllm:num_requests_waiting{{{inside}}} {waiting}.0",
        ]
    expected = Load(running=sum(rank[0] for rank in ranks), waiting=max(rank[1] for rank in ranks))
    assert parse_load("\n".join(lines)) == expected


def test_a_label_that_never_closes_is_read_in_linear_time() -> None:
    assert parse_load("vllm:num_requests_running{" + '"a\\' * 200_000) is None


def test_labels_without_end_are_read_in_linear_time() -> None:
    labels = 'engine="0",' * 50_000
    text = f"vllm:num_requests_running{{{labels}}} 1\nvllm:num_requests_waiting{{{labels}}} 2\n"
    assert parse_load(text) == Load(running=1, waiting=2)


def test_the_memory_of_an_engine_and_what_it_took_back_are_read() -> None:
    vllm = (
        'vllm:num_requests_running{engine="0"} 1\nvllm:num_requests_waiting{engine="0"} 0\n'
        'vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="100"} 1.0\n'
        'vllm:num_preemptions_total{engine="0"} 3\n'
    )
    assert parse_load(vllm) == Load(running=1, waiting=0, kv_tokens=1600, preemptions=3)
    ranks = vllm + vllm.replace('engine="0"', 'engine="1"')
    assert parse_load(ranks) == Load(running=2, waiting=0, kv_tokens=3200, preemptions=6)
    sglang = "sglang:num_running_reqs 1\nsglang:num_queue_reqs 0\nsglang:max_total_num_tokens 40000\n"
    assert parse_load(sglang) == Load(running=1, waiting=0, kv_tokens=40_000)
    silent = 'vllm:num_requests_running 1\nvllm:num_requests_waiting 0\nvllm:cache_config_info{block_size="16"} 1\n'
    assert parse_load(silent) == Load(running=1, waiting=0)


def test_ranks_of_different_memory_count_as_if_each_had_the_least() -> None:
    """Case 12: turns are spread evenly, so the smallest is full first."""
    lines = [
        f'vllm:cache_config_info{{engine="{rank}",block_size="16",num_gpu_blocks="{blocks}"}} 1\n'
        f'vllm:num_requests_running{{engine="{rank}"}} 1\nvllm:num_requests_waiting{{engine="{rank}"}} {rank}\n'
        for rank, blocks in enumerate((500, 250, 400))
    ]
    assert parse_load("".join(lines)) == Load(running=3, waiting=2, kv_tokens=3 * 250 * 16)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        pytest.param(VLLM + 'vllm:prompt_tokens_total{engine="0",model_name="m"} 700.0\n', 700, id="vllm"),
        pytest.param(SGLANG + 'sglang:prompt_tokens_total{model_name="m"} 70.0\n', 70, id="sglang"),
        pytest.param(LLAMA + "llamacpp:prompt_tokens_total 9\n", 9, id="llama-server"),
        pytest.param(
            VLLM + "".join(f'vllm:prompt_tokens_total{{engine="{rank}"}} 4\n' for rank in range(3)), 12, id="ranks"
        ),
        pytest.param(LLAMA, None, id="it does not say"),
    ],
)
def test_what_an_engine_has_read_since_its_start_is_told(text: str, read: int | None) -> None:
    load = parse_load(text)
    assert load is not None
    assert load.prompt_tokens == read
