"""The schema of a result."""

import json
from pathlib import Path

import jsonschema
import pytest

from luftpause.testkit.bench.machine import ROOT
from luftpause.testkit.bench.results import to_json
from luftpause.testkit.bench.schema import schema
from testkit.bench.measured import result

STORED = sorted((ROOT / "benchmarks" / "results" / "bench").glob("*.json"))


@pytest.mark.parametrize("file", STORED, ids=lambda file: file.stem)
def test_every_result_that_was_ever_stored_here_is_of_the_schema(file: Path) -> None:
    jsonschema.validate(json.loads(file.read_bytes()), schema())


def test_so_is_one_that_is_made_now_and_nothing_else_is() -> None:
    made = json.loads(to_json(result(direct=[1.0, None], turn_admission=[2.0, 3.0])))
    jsonschema.validate(made, schema())
    for broken in ({**made, "commit": None}, {**made, "arms": [{**made["arms"][0], "runs_per_min": 1.0}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema())
