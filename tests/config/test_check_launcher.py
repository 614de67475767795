"""What no single key of the launcher can tell."""

from collections.abc import Mapping

import msgspec
import pytest

from luftpause.config.check_launcher import check_launcher
from luftpause.config.launcher_schema import Launcher
from luftpause.config.problems import dotted

LLAMA = {"name": "l", "backend": "llama.cpp", "model_path": "l.gguf"}
OWN = {"name": "o", "backend": "command", "command": ["serve"]}
OLLAMA = {"name": "q", "backend": "ollama"}


def found(**keys: object) -> list[str]:
    launcher = msgspec.convert(keys, Launcher)
    return [f"{dotted(path)}: {what}" for path, what in check_launcher(launcher)]


def model(base: Mapping[str, object], **keys: object) -> dict[str, object]:
    return {"models": [{**base, **keys}]}


def test_every_backend_is_fine_with_what_it_needs() -> None:
    weights = [{"name": name, "backend": name, "model_path": "w"} for name in ("vllm", "sglang")]
    assert found(models=[LLAMA, OWN, OLLAMA, *weights]) == []
    assert found(**model(OWN, instances=2, persistent=True)) == []
    assert found(**model(OWN, instances=2, persistent=True, ttl="never")) == []
    assert found(ttl="never", memory="20GiB", **model(OWN, ttl="0s", memory="1GiB")) == []


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (model(OWN, command=[]), "command: is missing; backend 'command' needs the program and its arguments"),
        (model(LLAMA, model_path=""), "model_path: is missing; backend 'llama.cpp' needs the model's file"),
        (model(LLAMA, command=["x"]), "command: belongs to backend 'command'; backend 'llama.cpp' has a program"),
        (model(OLLAMA, args=["-x"]), "args: belongs to an engine that we start; Ollama is running already"),
        (model(OLLAMA, url="ftp://x"), "url: expected a url that begins with http:// or https://, got 'ftp://x'"),
        (model(OLLAMA, instances=2), "instances: Ollama runs a model once"),
        (model(OWN, instances=2), "instances: several stay up until an operator unloads them; say persistent = true"),
        (model(OWN, instances=2, persistent=True, ttl="5m"), "ttl: several instances stay up until an operator"),
        (model(OWN, group="g"), "group: there is no [[launcher.groups]] named 'g'"),
        (model(OWN, device="gpu0"), "device: there is no [[launcher.devices]] named 'gpu0'"),
        (model(OWN, pattern="("), "pattern: is no regular expression: "),
        (model(OWN, memory="0B"), "memory: must be larger than zero"),
        (model(OWN, ttl="400d"), "ttl: '400d' is longer than a year"),
        (model(OWN, readiness_timeout="0s"), "readiness_timeout: must be longer than zero"),
        (model(OWN, stop_command=["a\0"]), "stop_command[0]: must not contain a NUL character"),
    ],
)
def test_what_a_model_lacks_is_said_with_its_key(section: dict[str, object], expected: str) -> None:
    (complaint,) = found(**section)
    assert complaint.startswith(f"launcher.models[0].{expected}")


def test_devices_and_groups_have_names_of_their_own() -> None:
    devices = [{"name": "ram", "memory": "1GiB"}, {"name": "gpu", "memory": "1GiB"}, {"name": "gpu", "memory": "1GiB"}]
    assert found(devices=devices, groups=[{"name": "g"}, {"name": "g"}]) == [
        "launcher.groups[1].name: the name 'g' is taken by launcher.groups[0].name",
        "launcher.devices[2].name: the name 'gpu' is taken by launcher.devices[1].name",
        "launcher.devices[0].name: 'ram' is launcher.memory; name an accelerator",
    ]


@pytest.mark.parametrize(("key", "value"), [("circuit", "0s"), ("soft_lease_max", "400d"), ("adopt_within", "400d")])
def test_every_duration_of_the_launcher_is_looked_at(key: str, value: str) -> None:
    (complaint,) = found(**{key: value})
    assert complaint.startswith(f"launcher.{key}: ")
