"""Single-pass calls, with real processes."""

import tomllib
from pathlib import Path

import msgspec
import pytest

from luftpause.config.schema import Config
from luftpause.testkit.bench.over_http import single_pass as module
from luftpause.testkit.bench.over_http.doors import AbsentError
from luftpause.testkit.bench.over_http.single_pass import decide_config, measure_calls
from luftpause.testkit.bench.simulated import Job
from luftpause.testkit.bench.windows import Window
from luftpause.testkit.bench.workloads import WORKLOADS

SHORT = Window(warmup_s=0.2, minutes=0.02, speed=1.0)


def calls(scenario: str, arm: str) -> Job:
    return Job(scenario=scenario, arm=arm, seed=1, door="decide")


def test_the_classifier_is_configured_as_the_schema_has_it(tmp_path: Path) -> None:
    text = decide_config("http://127.0.0.1:1", "turn-admission", tmp_path)
    config = msgspec.convert(tomllib.loads(text), Config)
    assert [(each.kind, each.models) for each in config.replicas] == [("single-pass", ["labels"])]


def test_its_scenarios_are_those_of_the_workload() -> None:
    assert tuple(module.CALLERS) == WORKLOADS["seed-single-pass"].scenarios


def test_without_the_real_classifier_there_are_no_real_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PEERS", tmp_path)
    with pytest.raises(AbsentError, match="the small classifier is not in"):
        measure_calls(calls("one-at-a-time", "direct"), Window(real=True))


@pytest.mark.slow
@pytest.mark.parametrize("arm", ["direct", "turn-admission"])
def test_calls_are_timed(arm: str) -> None:
    sample = measure_calls(calls("twenty-at-once", arm), SHORT)
    p50, p99 = sample.figure("call_p50_ms"), sample.figure("call_p99_ms")
    assert p50 is not None
    assert p99 is not None
    assert float(module.FAKE_CALL_MS) / 2 < p50 <= p99
    assert sample.figure("calls_per_s")
    assert ("door" in sample.cores) is True
