"""What stands in front of the engines: each arm of the bench as real processes, started as its users would.

Routers come from an environment of their own, `.venv-bench/` of a checkout; what is not there is absent, with a reason.
"""

import http.client
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from luftpause.testkit.bench.machine import ROOT
from luftpause.testkit.bench.over_http.children import Child, free_port, wait_until
from luftpause.testkit.sim.scenario import RouterFigures

READY_S: Final = 60.0
PEERS: Final = ROOT / ".venv-bench"
"""The environment of other people's routers, in a checkout."""

PEERS_FROM: Final = "sh scripts/bench --peers installs it"
_WELL: Final = range(200, 300)


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
        pace: so many planned seconds pass in one: what a router waits for is shortened alike.
        tools: of sub-agents, as luftpause's configuration has them.
    """

    engines: Sequence[str]
    kind: str
    model: str
    router: RouterFigures
    folder: Path
    pace: float = 1.0
    tools: str = ""


@dataclass(frozen=True, slots=True)
class OpenDoor:
    """Where turns go, the process behind it, if there is one, and its MCP door, if it has one."""

    urls: tuple[str, ...]
    child: Child | None = None
    mcp_url: str = ""

    @property
    def children(self) -> tuple[Child, ...]:
        """The process, if there is one."""
        return () if self.child is None else (self.child,)

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
        f"[runtime]\nport = 0\nstate_dir = {state}\n{front.tools}"
    )


def _luftpause(policy: str) -> Callable[[Front], OpenDoor]:
    def start(front: Front) -> OpenDoor:
        child, said = started(front.folder, "up", luftpause_config(front, policy))
        door = _answering("luftpause", said["dataplane"], front.model, child)
        return replace(door, mcp_url=f"{said['runtime']}/mcp")

    return start


def started(folder: Path, service: str, config: str) -> tuple[Child, dict[str, str]]:
    """Start a service of luftpause; return its process and what its ready file says.

    Raises:
        AbsentError: it does not start.
    """
    file, ready = folder / f"{service}.toml", folder / f"{service}.json"
    file.write_text(config, encoding="utf-8")
    ready.unlink(missing_ok=True)
    env = {key: value for key, value in os.environ.items() if not key.startswith(("LUFTPAUSE_", "OTEL_"))}
    command = [sys.executable, "-m", "luftpause", service, "--config", str(file), "--ready-file", str(ready)]
    child = Child(command, log=folder / f"{service}.log", env=env)
    _await("luftpause", child, ready.exists)
    return child, json.loads(ready.read_text(encoding="utf-8"))


def _sglang(*options: str, tuned: bool = False) -> Callable[[Front], OpenDoor]:
    def start(front: Front) -> OpenDoor:
        own = [*options, "--balance-abs-threshold", str(front.router.balance_abs)] if tuned else list(options)
        limits = ["--max-concurrent-requests", "4096", "--queue-size", "4096", "--disable-circuit-breaker"]
        return _router("sglang_router", front, [*own, *limits, "--log-level", "error"])

    return start


def _vllm(front: Front) -> OpenDoor:
    return _router("vllm_router", front, ["--policy", "sticky_least_loaded", "--log-level", "warning"])


def _shepherd(front: Front) -> OpenDoor:
    """Start the Shepherd gateway with its priority scheduler; it is told each engine's slots as their labels.

    By itself it takes what an engine may run at most, which is never reached: no slot would ever be short.
    """
    config = front.folder / "smg.yaml"
    config.write_text(shepherd_config(front), encoding="utf-8")
    options = ["--priority-scheduler-enabled", "--priority-scheduler-config", str(config)]
    options += ["--priority-scheduler-default-max-class", "interactive", "--disable-circuit-breaker"]
    options += ["--balance-abs-threshold", str(front.router.balance_abs), "--log-level", "error"]
    url, child = _launched("smg", front, options)
    _await("smg", child, lambda: _asked(url, "GET", "/health") is not None)
    for engine in front.engines:
        worker = {"url": engine, "labels": {"max_running_requests": str(front.router.slots)}}
        _asked(url, "POST", "/workers", json.dumps(worker))
    _await("smg", child, lambda: (_asked(url, "GET", "/workers") or "").count('"ready"') >= len(front.engines))
    return _answering("smg", url, front.model, child)


def shepherd_config(front: Front) -> str:
    """Return the gateway's classes: its own queues and times, no floors, the scenario's reserve."""

    def own(reserved: float, queue_s: float, starving_s: float, *, preempts: bool) -> dict[str, object]:
        return {
            "reserved_floor": 0,
            "reserved_per_slot": reserved,
            "queue_size": 4096,
            "queue_timeout_secs": max(1, round(queue_s / front.pace)),
            "starvation_threshold_secs": max(1, round(starving_s / front.pace)),
            "can_preempt": preempts,
        }

    classes = {
        "system": own(0.0, 30, 5, preempts=True),
        "interactive": own(front.router.reserved, 30, 5, preempts=True),
        "default": own(0.0, 60, 30, preempts=False),
        "bulk": own(0.0, 300, 120, preempts=False),
    }
    return json.dumps({"classes": classes})  # JSON is YAML, too


def _router(package: str, front: Front, options: Sequence[str]) -> OpenDoor:
    """Start a router of the family that began as sglang-router."""
    url, child = _launched(package, front, ["--worker-urls", *front.engines, *options])
    return _answering(package, url, front.model, child)


def _launched(package: str, front: Front, options: Sequence[str]) -> tuple[str, Child]:
    """Start such a router on a free port; return its base URL and its process."""
    if not any(PEERS.glob(f"lib/python*/site-packages/{package}")):
        raise AbsentError(f"{package.replace('_', '-')} is not in .venv-bench: {PEERS_FROM}")
    port = free_port()
    command = [str(PEERS / "bin" / "python"), "-m", f"{package}.launch_router"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    command += ["--prometheus-host", "127.0.0.1", "--prometheus-port", str(free_port())]
    child = Child([*command, *options], log=front.folder / f"{package}.log")
    return f"http://127.0.0.1:{port}", child


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
    except BaseException:  # whoever stops the bench meanwhile: nobody else knows of it yet
        child.stop()
        raise


def _answering(name: str, url: str, model: str, child: Child) -> OpenDoor:
    """Return the door once it answers a turn."""
    _await(name, child, lambda: answers(url, model))
    return OpenDoor((url,), child)


def answers(url: str, model: str) -> bool:
    """Say whether a turn of one token is answered."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "x"}], "max_tokens": 1})
    return _asked(url, "POST", "/v1/chat/completions", body) is not None


def _asked(url: str, method: str, path: str, body: str = "") -> str | None:
    """Return an answer; None unless it says that all is well."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request(method, path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        return text if answer.status in _WELL else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


_MAKERS: Final[Mapping[str, Callable[[Front], OpenDoor]]] = {
    "direct": _direct,
    "sglang-router": _sglang(),
    "sglang-router-tuned": _sglang(tuned=True),
    "sglang-router-manual": _sglang("--policy", "manual", "--assignment-mode", "min_load"),
    "vllm-router": _vllm,
    "smg": _shepherd,
    "turn-admission": _luftpause("turn-admission"),
    "working-set": _luftpause("working-set"),
}

HTTP_ARMS: Final = tuple(_MAKERS)
"""Arms that exist as processes."""
