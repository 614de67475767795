"""The doctor at a `luftpause up` that runs, and at one that was not started because a port is taken."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import luftpause
from stories.programs import running
from stories.set_ups import free_port, launched_engines, tools, write

pytestmark = pytest.mark.timeout(120)
TOKEN = {"LUFTPAUSE_TOKEN": "hunter2"}


def ports() -> tuple[str, list[int]]:
    """Return four ports that were free a moment ago, and what configures them."""
    taken = [free_port() for _ in range(4)]
    text = "[dataplane]\nport = {}\n[runtime]\nport = {}\n[scheduler]\nhttp_port = {}\nport = {}\n"
    return text.format(*taken), taken


def doctor(folder: Path, config: str, env: dict[str, str]) -> tuple[int, list[dict[str, Any]]]:
    """Return its exit code, and what it found."""
    command = [sys.executable, "-m", "luftpause", "doctor", "--json", "--patience", "20", "--config", config]
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=90, check=False)
    assert ran.stderr == ""
    told = json.loads(ran.stdout)
    assert told["version"] == luftpause.__version__
    return ran.returncode, told["findings"]


def seen(findings: list[dict[str, Any]], *grades: str) -> str:
    return "\n".join(f"{each['check']}: {each['seen']}" for each in findings if each["grade"] in grades)


def test_all_that_runs_is_known_and_sound_and_another_token_is_not(
    tmp_path: Path, clean_environment: dict[str, str]
) -> None:
    text, taken = ports()
    config = write(tmp_path, text, launched_engines(), tools(0))
    with running(tmp_path, "up", "up", "--config", config, env=TOKEN) as up:
        code, findings = doctor(tmp_path, config, {**clean_environment, **TOKEN})
        here = [each for each in findings if each["check"] != "compiled"]  # whether a copy is there, and of what
        assert (code, seen(here, "error", "warning")) == (0, "")
        fine = seen(findings, "ok")
        for title, port in zip(("LLM door", "MCP door", "status", "link"), taken, strict=True):
            assert f":{port} " in fine
            assert f"is luftpause's {title} (process {up.process.pid}" in fine
        assert fine.count("is healthy") == 3
        assert f"services: the scheduler is of this version, {luftpause.__version__}" in fine
        assert "tools: fake lists lookup, deep_search" in fine
        assert f"journal: process {up.process.pid} has state" in seen(findings, "note")

        code, findings = doctor(tmp_path, config, {**clean_environment, "LUFTPAUSE_TOKEN": "wrong"})
        assert code == 1
        assert seen(findings, "error").endswith("does not accept the token in LUFTPAUSE_TOKEN")


def test_a_busy_port_and_a_dead_tool_server_are_errors_with_a_way_out(
    tmp_path: Path, clean_environment: dict[str, str]
) -> None:
    text, _ = ports()
    dead = '\n[[tools]]\nname = "dead"\ncommand = ["${python}", "-c", "raise SystemExit(3)"]\n'
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        config = write(tmp_path, text.replace("http_port = ", f"http_port = {port} # "), dead)
        command = [sys.executable, "-m", "luftpause", "doctor", "--patience", "8", "--config", config]
        ran = subprocess.run(
            command, cwd=tmp_path, env=clean_environment, capture_output=True, text=True, timeout=90, check=False
        )
    assert (ran.returncode, ran.stderr) == (1, "")
    assert f"127.0.0.1:{port} (scheduler.http_port) is taken" in ran.stdout
    assert f"-> luftpause up --config {config} --status-port 0" in ran.stdout
    assert "error    dead: " in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("2 errors, ")
    assert not (tmp_path / "state").exists()


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment without anything of ours."""
    monkeypatch.delenv("LUFTPAUSE_TOKEN", raising=False)
    return {name: value for name, value in os.environ.items() if not name.startswith("LUFTPAUSE_")}
