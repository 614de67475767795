"""Settings with engines on demand, and ways to look at them from outside."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from services.launcher.launcher_world import is_alive
from stories.programs import Program

WAIT_S = 30.0
ENGINE = '["${python}", "-m", "luftpause", "fake-engine", "--port", "${port}", "--model", "${model}"]'


def model(name: str, **keys: str) -> str:
    lines = "".join(f"{key} = {value}\n" for key, value in {"backend": '"command"', "command": ENGINE, **keys}.items())
    return f'\n[[launcher.models]]\nname = "{name}"\n{lines}'


def launcher(**keys: str) -> str:
    return "\n[launcher]\n" + "".join(f"{key} = {value}\n" for key, value in {"stop_grace": '"2s"', **keys}.items())


def ask(up: Program, name: str) -> httpx2.Response:
    body = {"model": name, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
    return httpx2.post(up.url("dataplane") + "/v1/chat/completions", json=body, timeout=WAIT_S)


def models(url: str) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in httpx2.get(url + "/models", timeout=WAIT_S).json()["models"]}


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def engines(pid: int) -> list[int]:
    listing = subprocess.run(["ps", "-wweo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(maxsplit=2) for line in listing.splitlines() if "orphan_watch" not in line]
    return [int(child) for child, parent, *_ in rows if int(parent) == pid and is_alive(int(child))]


def marked(directory: Path) -> dict[str, int]:
    """Return each engine that a launcher remembers, and its process."""
    marks = [json.loads(path.read_text()) for path in (directory / "state/launcher").glob("*.mark")]
    return {mark["name"]: mark["pid"] for mark in marks}


def luftpause(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "luftpause", *arguments]
    return subprocess.run(argv, cwd=directory, capture_output=True, text=True, timeout=WAIT_S, check=False)
