"""deploy/compose.yaml's services as processes of this machine: its command lines, variables and configuration."""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from repo.compose import FOLDER, compose, filled_in
from stories.programs import Program, running
from stories.set_ups import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

ORDER = ("fake-engine-a", "fake-engine-b", "fake-mcp", "scheduler", "dataplane", "runtime")
TOKEN = {"LUFTPAUSE_TOKEN": "of-this-test-alone"}


class Here:
    """Where each `name:port` of the containers is on this machine."""

    def __init__(self) -> None:
        self._ports: dict[str, int] = {}

    def port(self, name: str, port: int) -> int:
        return self._ports.setdefault(f"{name}:{port}", free_port())

    def moved(self, text: str) -> str:
        return re.sub(
            rf"({'|'.join(ORDER)}):(\d+)", lambda match: f"127.0.0.1:{self.port(match[1], int(match[2]))}", text
        )


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Program]]:
    folder = tmp_path_factory.mktemp("compose")
    here = Here()
    config = folder / "luftpause.toml"
    config.write_text(here.moved((FOLDER / "config/fake.toml").read_text(encoding="utf-8")), encoding="utf-8")
    fixed = {
        "LUFTPAUSE_SCHEDULER__PORT": str(here.port("scheduler", 5000)),
        "LUFTPAUSE_SCHEDULER__HTTP_PORT": str(here.port("scheduler", 5001)),
        "LUFTPAUSE_DATAPLANE__PORT": str(here.port("dataplane", 8080)),
        "LUFTPAUSE_RUNTIME__PORT": str(here.port("runtime", 7000)),
        "LUFTPAUSE_RUNTIME__STATE_DIR": str(folder / "state"),  # as the image says
    }
    with ExitStack() as stack:
        started: dict[str, Program] = {}
        for name in ORDER:
            service = compose()[name]
            words = [str(word) for word in service["command"]]
            moved = {"/etc/luftpause/luftpause.toml": str(config), "0.0.0.0": "127.0.0.1"}
            words = [moved.get(word, word) for word in words]
            if name.startswith("fake"):
                port = words.index("--port") + 1 if "--port" in words else 0
                if port:
                    words[port] = str(here.port(name, int(words[port])))
                else:
                    words += ["--port", str(here.port(name, 9000))]
            env = {
                key: here.moved(filled_in(str(value), TOKEN)) for key, value in service.get("environment", {}).items()
            }
            if env.get("LUFTPAUSE_SCHEDULER__HOST") == "scheduler":
                env["LUFTPAUSE_SCHEDULER__HOST"] = "127.0.0.1"
            started[name] = stack.enter_context(running(folder, name, *words, env={**env, **fixed}))
        yield started


def test_sub_agents_come_to_their_end_over_the_mcp_door(services: dict[str, Program], tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    words = ["--spawn", "2", "--runs", "2", "--mcp-url", services["runtime"].url("runtime") + "/mcp"]
    asked = subprocess.run(
        [sys.executable, "-m", "luftpause", "loadgen", *words, "--json", str(summary)],
        env={**os.environ, **TOKEN},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr
    counted = json.loads(summary.read_text(encoding="utf-8"))
    assert (counted["runs"], counted["failed"]) == (2, 0)


def test_every_door_asks_for_the_token(services: dict[str, Program]) -> None:
    for name, path in (("dataplane", "/v1/models"), ("runtime", "/status"), ("scheduler", "/status")):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(services[name].url(name) + path, timeout=10)
        refused.value.close()
        assert refused.value.code == 401


def test_every_service_is_healthy_as_the_image_asks(services: dict[str, Program]) -> None:
    urls = [services[name].url(name) for name in ("dataplane", "runtime", "scheduler")]
    asked = [sys.executable, str(FOLDER / "healthy.py"), *urls]
    assert subprocess.run(asked, timeout=30, check=False).returncode == 0
    unused = f"http://127.0.0.1:{free_port()}"
    assert subprocess.run([*asked, unused], stderr=subprocess.DEVNULL, timeout=30, check=False).returncode == 1
