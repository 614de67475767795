"""Stored results."""

import json
from pathlib import Path

import msgspec
import pytest

from luftpause.testkit.bench.results import arm_results, file_name, from_json, load_results, samples_of, to_json
from testkit.bench.measured import result, sample, samples


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = result(sglang_router_tuned=[1.0, 2.0], turn_admission=[3.0, None])
    assert from_json(to_json(written)) == written
    (tmp_path / file_name(written)).write_bytes(to_json(written))
    assert load_results(tmp_path) == [written]


def test_an_arms_figures_stand_beside_its_name() -> None:
    stored = json.loads(to_json(result(turn_admission=[3.0, 5.0])))
    assert (stored["workload"], stored["commit"], stored["seeds"]) == ("w1", "abc", [1, 2])
    (arm,) = stored["arms"]
    assert arm["arm"] == "turn-admission"
    assert arm["runs_per_min"] == {"median": 4.0, "low": 3.0, "high": 5.0, "by_seed": [3.0, 5.0]}
    assert arm["interactive_p50_s"]["median"] is None


@pytest.mark.parametrize("text", [b"[]", b"{}", b'{"benchmark": "door"}', b"no", b'{"benchmark": "bench"}'])
def test_another_file_is_no_result(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        from_json(text)


def test_the_seeds_can_be_had_back() -> None:
    found = {"w1": {"direct": [sample(1.0), sample(2.0, broken="lost")]}}
    back = samples_of(arm_results(found))
    assert [each.figure("runs_per_min") for each in back["w1"]["direct"]] == [1.0, 2.0]
    assert sum(bool(each.broken) for each in back["w1"]["direct"]) == 1
    assert arm_results(samples(direct=[])) == ()
