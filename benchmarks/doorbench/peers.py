"""How each arm of the benchmark is started, and where it answers: direct, luftpause, sglang-router, nginx.

Every peer stands in front of the same two ports of the same raw engine and is one worker process where it has a choice.
"""

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.doorbench import replies
from benchmarks.doorbench.client import Address
from benchmarks.doorbench.processes import Child, wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
_READY_S = 40.0


class PeerUnavailable(Exception):
    """A peer is not installed here or did not start; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A running arm. `child` is None for direct, which has no process of its own."""

    name: str
    version: str
    address: Address
    child: Child | None

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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await_answers(name: str, child: Child, address: Address) -> None:
    def ready() -> bool:
        if not child.running:
            raise PeerUnavailable(f"{name} ended while starting: {child.tail()}")
        return _answers(address)

    try:
        wait_until(ready, timeout_s=_READY_S, what=name)
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


def luftpause_command() -> list[str]:
    """Return how `scripts/up` runs luftpause: compiled, where there is a compiled copy of these very sources."""
    asked = subprocess.run(["sh", str(ROOT / "scripts" / "compile"), "--current"], check=False)
    if asked.returncode == 0:
        return [sys.executable, str(ROOT / "build" / "compiled")]
    command = Path(sys.executable).parent / "luftpause"
    if not command.exists():
        raise PeerUnavailable(f"luftpause is not installed beside {sys.executable}")
    return [str(command)]


def start_luftpause(engines: Sequence[int], folder: Path) -> Peer:
    """Start `luftpause up` as a user would, and read the door's address from its ready file."""
    command = luftpause_command()
    config, ready_file, log = folder / "luftpause.toml", folder / "ready.json", folder / "luftpause.log"
    ready_file.unlink(missing_ok=True)
    config.write_text(luftpause_config(engines, folder / "state"), encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LUFTPAUSE_", "OTEL_"))}
    arguments = [*command, "up", "--config", str(config), "--ready-file", str(ready_file)]
    child = Child(arguments, log=log, env=env)

    def ready() -> bool:
        if not child.running:
            raise PeerUnavailable(f"luftpause up ended while starting: {child.tail()}")
        return ready_file.exists() and ready_file.read_text(encoding="utf-8").strip().endswith("}")

    try:
        wait_until(ready, timeout_s=_READY_S, what="luftpause up")
    except (TimeoutError, PeerUnavailable) as error:
        child.stop()
        raise PeerUnavailable(str(error)) from error
    host, _, port = json.loads(ready_file.read_text(encoding="utf-8"))["dataplane"].rpartition("//")[2].rpartition(":")
    address = (host, int(port))
    _await_answers("luftpause", child, address)
    return Peer("luftpause", _version([*command, "--version"]), address, child)


def start_sglang_router(engines: Sequence[int], folder: Path) -> Peer:
    """Start sglang-router from `.venv-bench/`, round robin over the two engines."""
    python = ROOT / ".venv-bench" / "bin" / "python"
    if not python.exists():
        raise PeerUnavailable("sglang-router is not installed: run scripts/bench once")
    port = _free_port()
    arguments = [str(python), "-m", "sglang_router.launch_router", "--host", "127.0.0.1", "--port", str(port)]
    arguments += ["--worker-urls", *(f"http://127.0.0.1:{engine}" for engine in engines), "--policy", "round_robin"]
    arguments += ["--prometheus-host", "127.0.0.1", "--prometheus-port", str(_free_port()), "--log-level", "error"]
    child = Child([*arguments, "--max-concurrent-requests", "4096"], log=folder / "sglang-router.log")
    _await_answers("sglang-router", child, ("127.0.0.1", port))
    pinned = (ROOT / "benchmarks" / "peers.txt").read_text(encoding="utf-8").partition("sglang-router==")[2].split()
    return Peer("sglang-router", pinned[0], ("127.0.0.1", port), child)


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
    port, config = _free_port(), folder / "nginx.conf"
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
    "sglang-router": start_sglang_router,
    "nginx": start_nginx,
}
"""Every arm, in the order of the tables."""
