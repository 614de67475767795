"""What stands in front of the engines: each arm of the bench as real processes, started as its users would.

Routers come from an environment of their own, `.venv-bench/` of a checkout; what is not there is absent, with a reason.
"""

import http.client
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from luftpause.testkit.bench.machine import ROOT
from luftpause.testkit.bench.over_http.children import Child, free_port, wait_until
from luftpause.testkit.sim.scenario import RouterFigures

READY_S: Final = 60.0
_HTTP_OK: Final = 200


class AbsentError(Exception):
    """An arm cannot be had here. Its text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """What a door is put in front of.

    Attributes:
        engines: base URLs.
        kind: what luftpause should take them for.
        model: that they serve.
        router: how tuned routers are set up.
        folder: for configurations and logs.
    """

    engines: Sequence[str]
    kind: str
    model: str
    router: RouterFigures
    folder: Path


@dataclass(frozen=True, slots=True)
class OpenDoor:
    """Where turns go, and the process behind it, if there is one."""

    urls: tuple[str, ...]
    child: Child | None = None

    def close(self) -> None:
        """End the process."""
        if self.child is not None:
            self.child.stop()


def open_door(arm: str, front: Front) -> OpenDoor:
    """Start an arm.

    Raises:
        AbsentError: it is not installed, did not start, or exists in simulation only.
    """
    maker = _MAKERS.get(arm)
    if maker is None:
        raise AbsentError("exists in simulation only")
    return maker(front)


def _direct(front: Front) -> OpenDoor:
    return OpenDoor(tuple(front.engines))


def luftpause_config(front: Front, policy: str) -> str:
    """Return the configuration of luftpause in front of engines: every port is picked by the system."""
    replicas = "".join(
        f'[[replicas]]\nname = "engine-{number}"\nurl = "{url}"\n'
        f'models = ["{front.model}"]\nengine = "{front.kind}"\n\n'
        for number, url in enumerate(front.engines)
    )
    state = json.dumps(str(front.folder / "state"))
    return (
        f"{replicas}[dataplane]\nport = 0\n\n[scheduler]\nport = 0\nhttp_port = 0\npolicy = {json.dumps(policy)}\n\n"
        f"[runtime]\nport = 0\nstate_dir = {state}\n"
    )


def _luftpause(policy: str) -> Callable[[Front], OpenDoor]:
    def start(front: Front) -> OpenDoor:
        config, ready = front.folder / "luftpause.toml", front.folder / "ready.json"
        config.write_text(luftpause_config(front, policy), encoding="utf-8")
        ready.unlink(missing_ok=True)
        env = {key: value for key, value in os.environ.items() if not key.startswith(("LUFTPAUSE_", "OTEL_"))}
        command = [sys.executable, "-m", "luftpause", "up", "--config", str(config), "--ready-file", str(ready)]
        child = Child(command, log=front.folder / "luftpause.log", env=env)
        _await("luftpause", child, ready.exists)
        url = json.loads(ready.read_text(encoding="utf-8"))["dataplane"]
        return _answering("luftpause", url, front.model, child)

    return start


def _sglang(*options: str, tuned: bool = False) -> Callable[[Front], OpenDoor]:
    def start(front: Front) -> OpenDoor:
        own = [*options, "--balance-abs-threshold", str(front.router.balance_abs)] if tuned else list(options)
        limits = ["--max-concurrent-requests", "4096", "--queue-size", "4096", "--disable-circuit-breaker"]
        return _router("sglang_router", front, [*own, *limits, "--log-level", "error"])

    return start


def _vllm(front: Front) -> OpenDoor:
    return _router("vllm_router", front, ["--policy", "sticky_least_loaded", "--log-level", "warning"])


def _router(package: str, front: Front, options: Sequence[str]) -> OpenDoor:
    """Start a router of the family that began as sglang-router."""
    python = ROOT / ".venv-bench" / "bin" / "python"
    if not any((ROOT / ".venv-bench").glob(f"lib/python*/site-packages/{package}")):
        raise AbsentError(f"{package.replace('_', '-')} is not in .venv-bench: sh scripts/bench installs it")
    port = free_port()
    command = [str(python), "-m", f"{package}.launch_router", "--host", "127.0.0.1", "--port", str(port)]
    command += [
        "--worker-urls",
        *front.engines,
        "--prometheus-host",
        "127.0.0.1",
        "--prometheus-port",
        str(free_port()),
    ]
    child = Child([*command, *options], log=front.folder / f"{package}.log")
    return _answering(package, f"http://127.0.0.1:{port}", front.model, child)


def _await(name: str, child: Child, ready: Callable[[], bool]) -> None:
    def is_ready() -> bool:
        if not child.running:
            raise AbsentError(f"{name} ended while starting: {child.tail()}")
        return ready()

    try:
        wait_until(is_ready, timeout_s=READY_S, what=name)
    except (TimeoutError, AbsentError) as error:
        child.stop()
        raise AbsentError(f"{error} {child.tail()}".strip()) from error


def _answering(name: str, url: str, model: str, child: Child) -> OpenDoor:
    """Return the door once it answers a turn."""
    _await(name, child, lambda: answers(url, model))
    return OpenDoor((url,), child)


def answers(url: str, model: str) -> bool:
    """Say whether a turn of one token is answered."""
    parts = urlsplit(url)
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "x"}], "max_tokens": 1})
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status == _HTTP_OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


_MAKERS: Final[Mapping[str, Callable[[Front], OpenDoor]]] = {
    "direct": _direct,
    "sglang-router": _sglang(),
    "sglang-router-tuned": _sglang(tuned=True),
    "sglang-router-manual": _sglang("--policy", "manual", "--assignment-mode", "min_load"),
    "vllm-router": _vllm,
    "turn-admission": _luftpause("turn-admission"),
    "working-set": _luftpause("working-set"),
}

HTTP_ARMS: Final = tuple(_MAKERS)
"""Arms that exist as processes."""
