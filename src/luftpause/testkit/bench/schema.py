"""The JSON schema of a result of the bench, as `--json` and `--results` write it: docs/bench.schema.json. Pure."""

import json
from typing import Any, Final

import msgspec

from luftpause.testkit.bench.results import ArmResult, WorkloadResult
from luftpause.testkit.bench.tables import TITLES
from luftpause.testkit.sim.figures import Spread

_REFS: Final = "#/$defs/{name}"


def schema() -> dict[str, Any]:
    """Return the schema: that of the result, but for the figures of an arm, which stand beside its name."""
    (whole,), parts = msgspec.json.schema_components([WorkloadResult], ref_template=_REFS)
    arm = parts[ArmResult.__name__]
    del arm["properties"]["figures"]
    arm["required"].remove("figures")
    spread = {"$ref": _REFS.format(name=Spread.__name__)}
    arm["properties"] |= {name: {**spread, "description": title} for name, (title, _) in TITLES.items()}
    arm["additionalProperties"] = spread
    root = parts.pop(WorkloadResult.__name__)
    root["properties"] = {"benchmark": {"const": "bench"}, **root["properties"]}
    root["required"].insert(0, "benchmark")
    assert whole == {"$ref": _REFS.format(name=WorkloadResult.__name__)}
    root["title"] = "A result of luftpause bench"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": parts}


def schema_json() -> str:
    """Return the schema as text."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
