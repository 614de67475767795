"""Models as programs see them have the shape that docs/status.schema.json promises."""

import json
from pathlib import Path

import jsonschema

from luftpause.core.model.ids import DeviceId, LauncherId, ModelName
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.scheduling.residency.state import ModelPhase
from luftpause.core.scheduling.residency.view import DeviceView, ModelView
from luftpause.services.scheduler.models_json import device_json, model_json

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/status.schema.json").read_text(encoding="utf-8"))
MODEL = ModelView(
    name=ModelName("m"),
    launcher=LauncherId("box"),
    connected=True,
    kind=ReplicaKind.GENERATIVE,
    phase=ModelPhase.LOADING,
    since_s=1.23456,
    replica=None,
    in_flight=1,
    waiting=2,
    expected=3,
    device=DeviceId("ram"),
    memory=4,
    is_measured=True,
    slots=4,
    parked=2,
    parked_size=40 << 20,
    load_s=5.0,
    pinned=False,
    persistent=True,
    ttl_left_s=None,
    eta_s=0.55555,
    retry_after_s=None,
    failures=0,
    why="turns wait for it",
)


def test_a_model_and_a_memory_are_as_the_schema_says() -> None:
    model = model_json(MODEL)
    jsonschema.validate(model, {**SCHEMA["$defs"]["model"], "$defs": SCHEMA["$defs"]})
    assert (model["state"], model["since_s"], model["eta_s"], model["ttl_left_s"]) == ("loading", 1.235, 0.556, None)
    assert model["leases"] == {"in_flight": 1, "waiting": 2, "expected": 3}
    device = device_json(DeviceView(launcher=LauncherId("box"), device=DeviceId("ram"), budget=10, taken=4))
    jsonschema.validate(device, {**SCHEMA["$defs"]["device"], "$defs": SCHEMA["$defs"]})
