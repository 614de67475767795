"""Verdicts and the generated document, from invented figures."""

import json
import tomllib
from pathlib import Path

import msgspec
import pytest
from benchmarks.doorbench import replies
from benchmarks.doorbench.behaviour import Behaviour, delays_ms
from benchmarks.doorbench.measure import SHAPES, Measured, Sample, order_of, sample_of
from benchmarks.doorbench.peers import litellm_config, luftpause_config, nginx_config
from benchmarks.doorbench.report import section, shape_tables, table, terminal_report
from benchmarks.doorbench.results import Results, load_results, store_results
from benchmarks.doorbench.targets import Limit, saturation_ratio, targets

from luftpause.config.schema import Config
from luftpause.testkit.bench.machine import Machine

ARMS = {
    "direct": "",
    "luftpause": "0.1.0",
    "one-worker": "0.1.0",
    "two-workers": "0.1.0",
    "sglang-router": "0.3.2",
    "nginx": "1.22.1",
    "litellm": "1.106.12",
}
FACTORS = {
    "direct": 0.5,
    "luftpause": 2.0,
    "one-worker": 2.5,
    "two-workers": 2.7,
    "sglang-router": 4.0,
    "nginx": 1.0,
    "litellm": 200.0,
}
ONLY_IN_ONE = {"one-worker", "two-workers", "litellm"}


def sample(factor: float, *, own_process: bool = True) -> Sample:
    """A sample of an arm that costs `factor` times 50 µs."""
    return Sample(
        requests_per_s=20_000 / factor,
        failed=0,
        p50_us=400 + 100 * factor,
        p99_us=900 + 100 * factor,
        first_p50_us=300 + 100 * factor,
        first_p99_us=800 + 100 * factor,
        late_p50_us=60,
        late_p99_us=200,
        cpu_us=50 * factor if own_process else None,
        cpu_us_per_event=10 * factor if own_process else None,
        cores_busy=1.0 if own_process else None,
    )


def behaviour(**changes: object) -> Behaviour:
    """An arm that behaves, but for the changes."""
    good = Behaviour(
        same_body=True,
        idle_streams=250,
        idle_asked=250,
        idle_stream_bytes=15_000,
        closed_after_ms=(0.5, 1.5),
        closed_before_ms=(0.5, 3.0),
        never_closed=0,
        slow_reader_bytes=300_000,
        slow_reader_total_bytes=8_000_000,
    )
    return msgspec.structs.replace(good, **changes)


def results(*, without: tuple[str, ...] = (), own: Behaviour | None = None) -> Results:
    """A run of three rounds, the second on a machine that was half as fast."""
    arms = {arm: version for arm, version in ARMS.items() if arm not in without}
    return Results(
        when="2026-01-02T03:04:05+00:00",
        commit="0123456789",
        mode="quick",
        seconds=50,
        machine=Machine(system="Linux 6", processor="Model T", cores=2, memory_gib=8, python="3.11.7", load_before=0.5),
        arms=arms,
        absent=dict.fromkeys(without, "is not on PATH"),
        shapes={
            shape.key: {
                arm: [sample(FACTORS[arm] * speed, own_process=arm != "direct") for speed in (1, 2, 1)]
                if shape.key == "one" or arm not in ONLY_IN_ONE
                else []
                for arm in arms
            }
            for shape in SHAPES
        },
        behaviour={arm: own if own and arm == "luftpause" else behaviour() for arm in arms if arm not in ONLY_IN_ONE},
    )


def verdicts(run: Results) -> dict[str, tuple[str, str]]:
    return {
        target.name: (
            "; ".join(limit.verdict() for limit in target.must),
            "; ".join(limit.verdict() for limit in target.goal),
        )
        for target in targets(run)
    }


def test_ratios_are_taken_round_by_round_so_a_slow_round_does_not_move_them() -> None:
    ratio = results().ratio("one", "cpu_us", "luftpause", "sglang-router")
    assert ratio is not None
    assert (ratio.low, ratio.median, ratio.high) == (0.5, 0.5, 0.5)


def test_added_latency_is_the_difference_to_direct() -> None:
    added = results().added("paced", "first_p50_us", "luftpause")
    assert added is not None
    assert added.median == pytest.approx(150)
    assert results().added_ratio("paced", "first_p50_us", "luftpause", "sglang-router") == pytest.approx(150 / 350)


def test_tails_compare_best_rounds_so_one_bad_round_does_not_count() -> None:
    run = results()
    run.shapes["paced"]["direct"][1].first_p99_us = 190_000
    assert run.added_at_best("paced", "first_p99_us", "luftpause") == pytest.approx(150)
    assert "first byte p99, best round" in section(run)


def test_every_row_says_met_or_missed_by_how_much() -> None:
    said = verdicts(results())
    assert said["CPU per one-chunk streamed request"] == (
        "≤ 0.6× sglang-router: **met** (0.50×); ≤ 1/80 litellm: **met** (1/100)",
        "≤ 100 µs: **met** (100 µs); ≤ 2× nginx: **met** (2.00×); ≤ 1/150 litellm: **missed by 1.50×** (1/100)",
    )
    assert said["CPU per request, two workers on one port"] == (
        "≤ 1.15× one worker: **met** (1.08×)",
        "≤ 1.05× one worker: **missed by 1.03×** (1.08×)",
    )
    assert said["requests/s at saturation, one core"] == (
        "≥ 0.35× nginx: **met** (0.50×)",
        "≥ 10,000: **met** (10,000); ≥ 0.55× nginx: **missed by 1.10×** (0.50×)",
    )
    assert said["added first-byte p50, paced, 16 connections"] == (
        "≤ 1× sglang-router's: **met** (0.43×)",
        "≤ 1.6× nginx's: **missed by 1.88×** (3.00×)",
    )
    assert said["upstream closed after the client left"][1] == (
        "≤ 2 ms mid-stream: **met** (worst 1.5 ms); ≤ 2 ms before the first byte: **missed by 1.50×** (worst 3.0 ms)"
    )
    assert said["memory per idle stream"] == (
        "≤ 25 kB: **met** (15.0 kB, 250 of 250 held)",
        "≤ 8 kB: **missed by 1.88×** (15.0 kB, 250 of 250 held)",
    )
    assert said["slow reader, held by us"] == ("≤ 1 MB: **met** (300 kB)", "≤ 256 kB: **missed by 1.17×** (300 kB)")
    assert said["256 KiB body, CPU"][0] == "≤ 0.5× sglang-router: **met** (0.50×)"
    assert said["CPU per chunk on paced streams"][1] == "≤ 0.85× sglang-router: **met** (0.50×)"


def test_what_was_not_measured_never_counts_as_met() -> None:
    said = verdicts(results(without=("nginx",)))
    assert said["requests/s at saturation, one core"][0] == "≥ 0.35× nginx: not measured, nginx absent"
    said = verdicts(results(without=("one-worker",)))
    assert said["CPU per request, two workers on one port"][0] == "≤ 1.15× one worker: not measured, one-worker absent"
    for must, goal in verdicts(results(without=("luftpause", "two-workers"))).values():
        assert "met**" not in must + goal


def test_an_arm_stands_only_in_the_tables_of_what_it_was_measured_in() -> None:
    tables = dict(shape_tables(results()))
    assert [("litellm" in text, "two-workers" in text) for text in tables.values()] == [
        (shape.key == "one", shape.key == "one") for shape in SHAPES
    ]


def test_an_upstream_that_stays_open_is_a_miss_whatever_the_others_took() -> None:
    must, _ = verdicts(results(own=behaviour(never_closed=3)))["upstream closed after the client left"]
    assert must.count("**missed**, 3 never closed") == 2


def test_saturation_takes_the_stricter_reading() -> None:
    run = results()
    for own in run.shapes["one"]["luftpause"]:
        own.cpu_us = 200
    assert saturation_ratio(run) == pytest.approx(0.25)


def test_a_limit_met_exactly_is_met() -> None:
    assert Limit(label="x", value=2, bound=2).met
    assert Limit(label="x", value=2, bound=2, at_most=False).met
    assert Limit(label="x", value=None, bound=2).met is None


def test_the_section_is_generated_from_the_stored_file(tmp_path: Path) -> None:
    stored = tmp_path / "results" / "door.json"
    run = results(without=("nginx",))
    store_results(run, stored)
    assert load_results(stored) == run
    text = section(run)
    for expected in ("Model T", "sglang-router 0.3.2", "Absent from this run: nginx (is not on PATH).", "0.50×"):
        assert expected in text


def test_every_line_of_a_table_has_the_same_number_of_cells() -> None:
    for text in (section(results()), terminal_report(results())):
        counts: list[int] = []
        for line in text.splitlines():
            if line.startswith("|"):
                counts.append(line.count("|"))
            else:
                assert len(set(counts)) <= 1
                counts = []


def test_columns_line_up() -> None:
    assert table(["a", "bb"], [["ccc", "d"]]) == "| a   | bb |\n|-----|----|\n| ccc | d  |"


def test_cpu_is_counted_per_request_and_per_event() -> None:
    measured = Measured(
        event="measured",
        seconds=2,
        done=1000,
        failed=1,
        body_bytes=50_000,
        p50_us=1,
        p99_us=2,
        first_p50_us=1,
        first_p99_us=2,
        late_p50_us=0,
        late_p99_us=0,
    )
    counted = sample_of(measured, cpu=0.5, event_bytes=10)
    assert (counted.requests_per_s, counted.cpu_us, counted.cpu_us_per_event, counted.cores_busy) == (
        500,
        500,
        100,
        0.25,
    )
    unknown = sample_of(measured, cpu=None, event_bytes=10)
    assert (unknown.cpu_us, unknown.cpu_us_per_event, unknown.cores_busy) == (None, None, None)


def test_the_order_of_arms_turns_from_round_to_round() -> None:
    assert [order_of("ABC", index) for index in range(4)] == [list("ABC"), list("BCA"), list("CAB"), list("ABC")]


def test_delays_count_only_the_exchanges_that_were_lost() -> None:
    left = {"after-0": 1_000_000, "after-1": 2_000_000, "before-0": 0}
    assert delays_ms(left, {"after-0": 3_000_000, "before-0": 500_000}, "after") == [2.0]


def test_the_configuration_of_our_own_arm_is_valid() -> None:
    text = luftpause_config([1001, 1002], Path("/nowhere/state"))
    config = msgspec.convert(tomllib.loads(text), type=Config)
    assert [replica.url for replica in config.replicas] == ["http://127.0.0.1:1001", "http://127.0.0.1:1002"]
    assert (config.dataplane.port, config.scheduler.port, config.scheduler.http_port, config.runtime.port) == (
        0,
        0,
        0,
        0,
    )


def test_litellm_stands_in_front_of_every_engine() -> None:
    config = json.loads(litellm_config([1001, 1002]))
    found = [deployment["litellm_params"]["api_base"] for deployment in config["model_list"]]
    assert found == ["http://127.0.0.1:1001/v1", "http://127.0.0.1:1002/v1"]
    assert {deployment["model_name"] for deployment in config["model_list"]} == {replies.MODEL}


def test_nginx_stands_in_front_of_every_engine_with_one_worker() -> None:
    text = nginx_config([1001, 1002], 8080, Path("/nowhere"))
    assert "worker_processes 1;" in text
    assert text.count("server 127.0.0.1:100") == 2
    assert text.count("{") == text.count("}")
