"""`luftpause up` as a person meets it: it starts, says what is wrong, and ends when it is told."""

import json
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from httpx2 import HTTPError
from openai import APIError, OpenAI

from stories.programs import running
from stories.set_ups import FREE_PORTS, MODEL, launched_engines, tools, write

pytestmark = pytest.mark.timeout(120)


def luftpause(directory: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "luftpause", *arguments],
        cwd=directory,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=90,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("option", ["dataplane.port", "runtime.port", "scheduler.port", "scheduler.http_port"])
def test_a_taken_port_is_one_line_that_names_it_and_the_way_out(tmp_path: Path, option: str) -> None:
    config = write(tmp_path, FREE_PORTS)
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        ended = luftpause(tmp_path, "up", "--config", config, "--set", f"{option}={port}")
    assert ended.returncode == 1, ended
    errors = [line for line in ended.stderr.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert str(port) in errors[0]
    assert option in errors[0]
    assert "Traceback" not in ended.stderr


def test_an_unknown_key_is_a_usage_error_that_names_the_nearest_one(tmp_path: Path) -> None:
    config = write(tmp_path, "[dataplne]\nport = 1\n")
    ended = luftpause(tmp_path, "up", "--config", config)
    assert ended.returncode == 2
    assert "dataplne" in ended.stderr
    assert "'dataplane'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_public_address_without_a_token_is_refused(tmp_path: Path) -> None:
    config = write(tmp_path, FREE_PORTS)
    ended = luftpause(tmp_path, "up", "--config", config, "--set", "dataplane.host=0.0.0.0", LUFTPAUSE_TOKEN="")
    assert ended.returncode == 1
    assert "LUFTPAUSE_TOKEN" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_token_is_asked_for_at_every_door(tmp_path: Path) -> None:
    config = write(tmp_path, FREE_PORTS, launched_engines(instances=1), tools(0.1))
    with running(tmp_path, "up", "up", "--config", config, env={"LUFTPAUSE_TOKEN": "open-sesame"}) as up:
        for service, path in (("dataplane", "/v1/models"), ("runtime", "/status"), ("scheduler", "/status")):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(up.url(service) + path, timeout=10)
            assert refused.value.code == 401
            refused.value.close()
            asked = urllib.request.Request(up.url(service) + path, headers={"authorization": "Bearer open-sesame"})
            with urllib.request.urlopen(asked, timeout=10) as response:
                assert response.status == 200
            with urllib.request.urlopen(up.url(service) + "/health", timeout=10) as response:
                assert response.status == 200


def test_ctrl_c_ends_everything_in_seconds_even_while_a_turn_streams(tmp_path: Path) -> None:
    config = write(tmp_path, FREE_PORTS, launched_engines("--token-ms", "200", instances=1), tools(0.1))
    with running(tmp_path, "up", "up", "--config", config) as up:
        begun = threading.Event()

        def stream() -> None:
            with OpenAI(base_url=up.url("dataplane") + "/v1", api_key="unused", max_retries=0) as client:
                try:
                    for _ in client.chat.completions.create(
                        model=MODEL, messages=[{"role": "user", "content": "[tokens:3000] go"}], stream=True
                    ):
                        begun.set()
                except (APIError, HTTPError):
                    return  # the stream was cut, as it has to be

        client = threading.Thread(target=stream)
        client.start()
        assert begun.wait(30)
        children = _children(up.process.pid)
        assert children
        assert up.interrupt() == 0
        client.join(10)
        assert not client.is_alive()
        assert [child for child in children if _is_alive(child)] == []


def test_status_shows_what_runs(tmp_path: Path) -> None:
    config = write(tmp_path, FREE_PORTS, launched_engines(instances=2))
    with running(tmp_path, "up", "up", "--config", config) as up:
        with OpenAI(base_url=up.url("dataplane") + "/v1", api_key="unused", max_retries=0) as client:
            client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}])
        status: dict[str, Any] = {"replicas": []}
        while len(status["replicas"]) < 2:  # the second engine may come up later than the first answer
            shown = luftpause(tmp_path, "status", "--json", "--url", up.url("scheduler"))
            assert shown.returncode == 0, shown.stderr
            status = json.loads(shown.stdout)
        assert sorted(replica["name"] for replica in status["replicas"]) == ["fake-1", "fake-2"]
        assert status["runs"] == [{"phase": "idle", "class": "interactive", "count": 1}]
        table = luftpause(tmp_path, "status", "--url", up.url("scheduler"))
        assert table.returncode == 0
        assert "fake-1" in table.stdout


def _children(pid: int) -> list[int]:
    listing = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = (line.split() for line in listing.splitlines())
    return [int(child) for child, parent in pairs if int(parent) == pid]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
