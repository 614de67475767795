"""What deploy/ says fits the program, the configuration, and itself."""

import json
import re
import subprocess
import tomllib
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from click import Context

from luftpause.cli.main import main
from luftpause.config.load import load
from repo.compose import FOLDER, OVERLAYS, compose, filled_in
from repo.sources import ROOT

OURS = ("scheduler", "dataplane", "runtime")
SECRETS = {"RUNPOD_KEY": "k", "RUNPOD_POD_ID": "p"}
MANIFESTS = sorted(path for path in (FOLDER / "kubernetes").glob("*.yaml") if path.name != "kustomization.yaml")


def is_a_command_line(words: list[str]) -> bool:
    """Return whether our program would take these words, whatever the values."""
    command = main.get_command(Context(main), words[0])
    assert command is not None, words[0]
    names = {name for parameter in command.params for name in parameter.opts}
    return {word for word in words if word.startswith("--")} <= names


def environment(service: Mapping[str, Any]) -> dict[str, str]:
    return {name: filled_in(str(value), SECRETS) for name, value in service.get("environment", {}).items()}


@pytest.mark.parametrize("overlay", ["", *OVERLAYS])
def test_each_service_of_ours_has_a_command_line_and_a_configuration(overlay: str) -> None:
    services = compose(overlay)
    for name, service in services.items():
        if "luftpause" in service["image"]:
            assert is_a_command_line(service["command"]), name
            assert filled_in(service["image"], {}) in (
                "luftpause/luftpause:latest",
                "luftpause/luftpause-wikipedia:latest",
            )
    for name in OURS:
        service = services[name]
        mounted = next(volume for volume in service["volumes"] if volume.endswith(":/etc/luftpause/luftpause.toml:ro"))
        file = FOLDER / mounted.split(":", maxsplit=1)[0]
        config = load(file, environment(service), {}).config
        assert config.scheduler.host == "scheduler"
        assert config.runtime.dataplane_url == f"http://dataplane:{config.dataplane.port}"
        models = {model for replica in config.replicas for model in replica.models}
        assert config.runtime.default_model in models
        hosts = [re.sub(r"^https?://([^:/]+).*", r"\1", replica.url) for replica in config.replicas]
        assert overlay in ("ollama", "hosted") or set(hosts) <= set(services)


def test_what_is_published_is_published_on_loopback_unless_told_otherwise() -> None:
    for overlay in ("", *OVERLAYS):
        for service in compose(overlay).values():
            for port in service.get("ports", ()):
                assert filled_in(port, {}).startswith("127.0.0.1:"), port


def test_a_hosted_endpoint_without_its_key_is_refused_before_anything_starts() -> None:
    service = compose("hosted")["scheduler"]
    with pytest.raises(KeyError, match="the key of the endpoint"):
        filled_in(service["environment"]["RUNPOD_KEY"], {})


def test_what_the_image_is_made_of_is_there_and_not_ignored() -> None:
    dockerfile = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    copied = [words.split()[:-1] for words in re.findall(r"^COPY (?!--from)(.*)$", dockerfile, re.MULTILINE)]
    assert copied
    for source in (name for names in copied for name in names):
        assert (ROOT / source).exists(), source
        assert f"!{source}" in ignored, source
    assert re.search(r"^USER luftpause$", dockerfile, re.MULTILINE)
    assert set(re.findall(r"--target (\w+)|AS (\w+)$", dockerfile, re.MULTILINE))


def test_the_manifests_fit_each_other() -> None:
    parts = [part for path in MANIFESTS for part in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    kustomization = yaml.safe_load((FOLDER / "kubernetes/kustomization.yaml").read_text(encoding="utf-8"))
    assert sorted(kustomization["resources"]) == sorted(path.name for path in MANIFESTS)
    workloads = {part["metadata"]["name"]: part for part in parts if part["kind"] in ("Deployment", "StatefulSet")}
    services = {part["metadata"]["name"]: part for part in parts if part["kind"] == "Service"}
    assert set(workloads) == set(services) == set(OURS)
    settings = {"LUFTPAUSE_SCHEDULER__HOST": "scheduler"}
    config = load(FOLDER / "kubernetes/luftpause.toml", settings, {}).config
    ports = {
        "scheduler": {config.scheduler.port, config.scheduler.http_port},
        "dataplane": {config.dataplane.port},
        "runtime": {config.runtime.port},
    }
    for name, workload in workloads.items():
        (container,) = workload["spec"]["template"]["spec"]["containers"]
        assert is_a_command_line(container["args"])
        assert {port["containerPort"] for port in container["ports"]} == ports[name]
        assert {port["port"] for port in services[name]["spec"]["ports"]} == ports[name]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert workloads["scheduler"]["spec"]["replicas"] == workloads["runtime"]["spec"]["replicas"] == 1


def test_the_registry_entry_is_of_this_version() -> None:
    server = json.loads((FOLDER / "server.json").read_text(encoding="utf-8"))
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert server["version"] == version
    (package,) = server["packages"]
    assert (package["identifier"], package["version"]) == ("luftpause", version)
    assert len(server["description"]) <= 100  # the registry refuses more
    assert f"mcp-name: {server['name']}" in (ROOT / "README.md").read_text(encoding="utf-8")  # its proof of ownership


def test_the_unit_starts_a_command_that_is_there() -> None:
    unit = (FOLDER / "systemd/luftpause.service").read_text(encoding="utf-8")
    started = re.search(r"^ExecStart=/opt/luftpause/bin/luftpause (.*)$", unit, re.MULTILINE)
    assert started is not None
    assert is_a_command_line(started[1].split())
    assert not re.search(r"^Environment=.*(TOKEN|KEY)", unit, re.MULTILINE)


def test_a_release_that_is_only_tried_says_what_it_would_do() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    said = subprocess.run(
        ["sh", "scripts/release", f"v{version}"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "DRY_RUN": "1", "LUFTPAUSE_REGISTRY": "registry.example/us"},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout
    assert f"+ docker push registry.example/us/luftpause:v{version}" in said
    assert f"+ git push origin v{version}" in said
