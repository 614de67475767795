"""How each arm of the benchmark is started, and where it answers.

Every peer stands in front of the same two ports of the same raw engine and is one worker process where it has a choice;
only `two-workers` is two on purpose.
"""

import http.client
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.doorbench import replies
from benchmarks.doorbench.client import Address
from benchmarks.doorbench.processes import python_module

from luftpause.testkit.bench.over_http.children import Child, free_port, wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
_READY_S = 40.0
_HEAVY_READY_S = 90.0
_WARM_REQUESTS = 40


class PeerUnavailable(Exception):
    """A peer is not installed here or did not start; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A running arm. `child` is None for direct, which has no process of its own.

    Attributes:
        shapes: keys of the shapes that it is measured in; None is all of them, and its behaviour too.
        connections_max: more than so many connections at once tell nothing about it; 0 is no limit.
    """

    name: str
    version: str
    address: Address
    child: Child | None
    shapes: frozenset[str] | None = None
    connections_max: int = 0

    def stop(self) -> None:
        """End the peer's process, if it has one."""
        if self.child is not None:
            self.child.stop()


def ask(address: Address, body: bytes, *, timeout_s: float = 5.0) -> tuple[int, bytes]:
    """Send one chat completion and return status and body.

    Raises:
        OSError: nobody listens there, or the answer took too long.
    """
    connection = http.client.HTTPConnection(*address, timeout=timeout_s)
    try:
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def fetch_json(address: Address, path: str) -> dict[str, object]:
    """Return the JSON object at a path of a server."""
    connection = http.client.HTTPConnection(*address, timeout=5.0)
    try:
        connection.request("GET", path)
        record = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    assert isinstance(record, dict)
    return record


def _answers(address: Address) -> bool:
    try:
        return ask(address, replies.request_body("json", size=512, stream=False))[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def _await_answers(name: str, child: Child, address: Address, *, timeout_s: float = _READY_S) -> None:
    def ready() -> bool:
        if not child.running:
            raise PeerUnavailable(f"{name} ended while starting: {child.tail()}")
        return _answers(address)

    try:
        wait_until(ready, timeout_s=timeout_s, what=name)
    except (TimeoutError, PeerUnavailable) as error:
        child.stop()
        raise PeerUnavailable(f"{error} {child.tail()}") from error


def start_direct(engines: Sequence[int], _folder: Path) -> Peer:
    """Return the engine's own first port: what everything is compared with."""
    return Peer("direct", "", ("127.0.0.1", engines[0]), None)


def luftpause_config(engines: Sequence[int], state_dir: Path) -> str:
    """Return the `luftpause.toml` of the arm: two replicas, every port picked by the system."""
    replicas = "".join(
        f'[[replicas]]\nname = "engine-{index}"\nurl = "http://127.0.0.1:{port}"\n'
        f'models = ["{replies.MODEL}"]\nengine = "vllm"\n\n'
        for index, port in enumerate(engines)
    )
    return (
        f"{replicas}[dataplane]\nport = 0\n\n[scheduler]\nport = 0\nhttp_port = 0\n\n"
        f"[runtime]\nport = 0\nstate_dir = {json.dumps(str(state_dir))}\n"
    )


def start_luftpause(engines: Sequence[int], folder: Path) -> Peer:
    """Start `luftpause up` as a user would, and read the door's address from its ready file."""
    config, ready_file = folder / "luftpause.toml", folder / "ready.json"
    config.write_text(luftpause_config(engines, folder / "state"), encoding="utf-8")
    ready_file.unlink(missing_ok=True)
    arguments = [*_luftpause(), "up", "--config", str(config), "--ready-file", str(ready_file)]
    return _luftpause_at("luftpause", Child(arguments, log=folder / "luftpause.log", env=_plain_env()), ready_file)


def start_one_worker(engines: Sequence[int], folder: Path) -> Peer:
    """Start the LLM door in a process of its own, over the link to a scheduler: what two workers are compared with."""
    return _start_workers("one-worker", 1, engines, folder)


def start_two_workers(engines: Sequence[int], folder: Path) -> Peer:
    """Start the LLM door as two processes on one port, over the link to a scheduler."""
    return _start_workers("two-workers", 2, engines, folder)


def _start_workers(name: str, workers: int, engines: Sequence[int], folder: Path) -> Peer:
    command = _luftpause()
    config, ready_file, log = (folder / f"{name}.{kind}" for kind in ("toml", "json", "log"))
    ports = f"port = {free_port()}\nhttp_port = {free_port()}"
    text = luftpause_config(engines, folder / f"{name}-state").replace("port = 0\nhttp_port = 0", ports)
    config.write_text(text.replace("[dataplane]\n", f"[dataplane]\nworkers = {workers}\n"), encoding="utf-8")
    arguments = python_module("benchmarks.doorbench.scaled_out", str(config), str(ready_file), *command)
    peer = _luftpause_at(name, Child(arguments, log=log, env=_plain_env()), ready_file)
    return replace(peer, shapes=frozenset({"one"}))


def _luftpause() -> list[str]:
    """Return how `scripts/up` runs luftpause: compiled, where there is a compiled copy of these very sources."""
    asked = subprocess.run(["sh", str(ROOT / "scripts" / "compile"), "--current"], check=False)
    if asked.returncode == 0:
        return [sys.executable, str(ROOT / "build" / "compiled")]
    command = Path(sys.executable).parent / "luftpause"
    if not command.exists():
        raise PeerUnavailable(f"luftpause is not installed beside {sys.executable}")
    return [str(command)]


def _plain_env() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(("LUFTPAUSE_", "OTEL_"))}


def _luftpause_at(name: str, child: Child, ready_file: Path) -> Peer:
    """Return the arm once the door whose address the ready file tells serves turns."""

    def ready() -> bool:
        if not child.running:
            raise PeerUnavailable(f"{name} ended while starting: {child.tail()}")
        return ready_file.exists() and ready_file.read_text(encoding="utf-8").strip().endswith("}")

    try:
        wait_until(ready, timeout_s=_READY_S, what=name)
    except (TimeoutError, PeerUnavailable) as error:
        child.stop()
        raise PeerUnavailable(str(error)) from error
    host, _, port = json.loads(ready_file.read_text(encoding="utf-8"))["dataplane"].rpartition("//")[2].rpartition(":")
    address = (host, int(port))
    _await_answers(name, child, address)
    return Peer(name, _version([*_luftpause(), "--version"]), address, child)


def start_sglang_router(engines: Sequence[int], folder: Path) -> Peer:
    """Start sglang-router from `.venv-bench/`, round robin over the two engines."""
    python = ROOT / ".venv-bench" / "bin" / "python"
    if not python.exists():
        raise PeerUnavailable("sglang-router is not installed: run scripts/bench once")
    port = free_port()
    arguments = [str(python), "-m", "sglang_router.launch_router", "--host", "127.0.0.1", "--port", str(port)]
    arguments += ["--worker-urls", *(f"http://127.0.0.1:{engine}" for engine in engines), "--policy", "round_robin"]
    arguments += ["--prometheus-host", "127.0.0.1", "--prometheus-port", str(free_port()), "--log-level", "error"]
    child = Child([*arguments, "--max-concurrent-requests", "4096"], log=folder / "sglang-router.log")
    _await_answers("sglang-router", child, ("127.0.0.1", port))
    return Peer("sglang-router", _pinned("sglang-router"), ("127.0.0.1", port), child)


def litellm_config(engines: Sequence[int]) -> str:
    """Return the configuration of litellm's proxy, which is JSON and so YAML: one model behind both engines."""
    deployments = [
        {
            "model_name": replies.MODEL,
            "litellm_params": {
                "model": f"openai/{replies.MODEL}",
                "api_base": f"http://127.0.0.1:{engine}/v1",
                "api_key": "none",
            },
        }
        for engine in engines
    ]
    # Like every arm it stands on loopback and asks for no token.
    general = {"dangerously_permit_weak_or_unset_master_key": True}
    return json.dumps({"model_list": deployments, "general_settings": general})


def start_litellm(engines: Sequence[int], folder: Path) -> Peer:
    """Start litellm's proxy from `.venv-bench/`; it carries some tens of requests a second, so it gets few."""
    command = ROOT / ".venv-bench" / "bin" / "litellm"
    if not command.exists():
        raise PeerUnavailable("litellm is not installed: run scripts/bench once")
    port, config = free_port(), folder / "litellm.json"
    config.write_text(litellm_config(engines), encoding="utf-8")
    # Its price list comes with the package: nothing is fetched from elsewhere.
    env = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    arguments = [str(command), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    child = Child([*arguments, "--num_workers", "1"], log=folder / "litellm.log", env=env)
    address = ("127.0.0.1", port)
    _await_answers("litellm", child, address, timeout_s=_HEAVY_READY_S)
    for _ in range(_WARM_REQUESTS):  # the first ones cost it several times as much
        ask(address, replies.request_body("one", size=2048))
    shapes = frozenset({"one", "json"})
    return Peer("litellm", _pinned("litellm[proxy]"), address, child, shapes, connections_max=4)


def _pinned(package: str) -> str:
    """Return the version of a peer that `scripts/bench` installs."""
    pins = (ROOT / "benchmarks" / "peers.txt").read_text(encoding="utf-8").splitlines()
    return next(line.partition("==")[2] for line in pins if line.startswith(f"{package}=="))


def nginx_config(engines: Sequence[int], port: int, folder: Path) -> str:
    """Return an nginx configuration that proxies streams unbuffered over kept-alive connections, with one worker."""
    servers = "".join(f"    server 127.0.0.1:{engine};\n" for engine in engines)
    temporary = "".join(
        f"  {kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return (
        f"daemon off;\nworker_processes 1;\nworker_rlimit_nofile 8192;\npid {folder}/nginx.pid;\n"
        f"error_log {folder}/nginx.log warn;\nevents {{ worker_connections 4096; }}\nhttp {{\n{temporary}"
        f"  access_log off;\n  client_max_body_size 64m;\n  client_body_buffer_size 1m;\n"
        f"  keepalive_requests 100000000;\n  upstream engines {{\n{servers}    keepalive 128;\n"
        f"    keepalive_requests 100000000;\n  }}\n  server {{\n    listen 127.0.0.1:{port} backlog=2048;\n"
        f"    location / {{\n      proxy_pass http://engines;\n      proxy_http_version 1.1;\n"
        f'      proxy_set_header Connection "";\n      proxy_buffering off;\n'
        f"      proxy_read_timeout 600s;\n    }}\n  }}\n}}\n"
    )


def start_nginx(engines: Sequence[int], folder: Path) -> Peer:
    """Start nginx when it is on PATH."""
    command = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if command is None:
        raise PeerUnavailable("nginx is not on PATH (Debian: apt-get install nginx-light)")
    port, config = free_port(), folder / "nginx.conf"
    config.write_text(nginx_config(engines, port, folder), encoding="utf-8")
    child = Child([command, "-e", str(folder / "nginx.log"), "-c", str(config)], log=folder / "nginx.log")
    _await_answers("nginx", child, ("127.0.0.1", port))
    return Peer("nginx", _version([command, "-v"]).rpartition("/")[2], ("127.0.0.1", port), child)


def _version(command: list[str]) -> str:
    answer = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=20, check=False)
    words = (answer.stdout + answer.stderr).split()
    return words[-1] if words else "unknown"


PEERS: dict[str, Callable[[Sequence[int], Path], Peer]] = {
    "direct": start_direct,
    "luftpause": start_luftpause,
    "one-worker": start_one_worker,
    "two-workers": start_two_workers,
    "sglang-router": start_sglang_router,
    "nginx": start_nginx,
    "litellm": start_litellm,
}
"""Every arm, in the order of the tables."""
