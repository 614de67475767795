"""Configurations that the stories start from: fake engines and tools, every port free."""

import itertools
import os
import random
import socket
from pathlib import Path

FREE_PORTS = """
[dataplane]
port = 0
[scheduler]
port = 0
http_port = 0
[runtime]
port = 0
"""

TOOLS = """
[[tools]]
name = "fake"
command = ["${python}", "-m", "luftpause", "fake-mcp", "--stdio", "--delay-s", "DELAY", "--deep-delay-s", "DELAY"]
"""

MODEL = "fake"


LAUNCHER = "\n[launcher]\nauto_restart = true\nadopt = false\n"
"""What is killed here takes its engines along; `test_launcher.py` has the stories in which they live on."""


def launched_engines(*options: str, instances: int = 2) -> str:
    """Return the declaration of fake engines that the launcher starts."""
    words = ["${python}", "-m", "luftpause", "fake-engine", "--port", "${port}", "--model", "${model}", *options]
    command = ", ".join(f'"{word}"' for word in words)
    return (
        LAUNCHER + f'\n[[launcher.models]]\nname = "{MODEL}"\nbackend = "command"\ncommand = [{command}]\n'
        f'instances = {instances}\npersistent = {str(instances > 1).lower()}\npreload = true\nttl = "never"\n'
    )


def replicas(*urls: str) -> str:
    """Return the declaration of engines that run already."""
    return "".join(
        f'\n[[replicas]]\nname = "engine-{number}"\nurl = "{url}"\nmodels = ["{MODEL}"]\n'
        for number, url in enumerate(urls, 1)
    )


def tools(delay_s: float) -> str:
    """Return the declaration of fake tools that take so long."""
    return TOOLS.replace("DELAY", str(delay_s))


def write(directory: Path, *parts: str) -> str:
    """Write a configuration and return the arguments that name it."""
    file = directory / "luftpause.toml"
    file.write_text("\n".join(parts))
    return str(file)


PORTS_EACH = 1000
"""Ports for each of the processes that share the tests."""

FIRST_PORT = 20_000 + PORTS_EACH * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 12)
"""All lie below those that a kernel gives to whoever asks for any: there, somebody else could have it before us."""

_ports = itertools.cycle(random.sample(range(FIRST_PORT, FIRST_PORT + PORTS_EACH), PORTS_EACH))


def free_port() -> int:
    """Return a port that was free a moment ago and that is given to nobody else soon."""
    for port in itertools.islice(_ports, PORTS_EACH):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"no port from {FIRST_PORT} to {FIRST_PORT + PORTS_EACH - 1} is free")
