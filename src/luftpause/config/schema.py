"""The shape of `luftpause.toml`: one frozen struct per section, unknown keys refused, every default in place.

Durations are strings like "10m", "500ms" or "2h30m"; sizes like "20GiB" or "600MB" (see `config.units`).
Secrets never stand here: a key that ends in `_env` names the environment variable that holds one.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Port = Annotated[int, Meta(ge=0, le=65535, description="0 picks a free port and prints it")]
Name = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$")]
Duration = Annotated[str, Meta(pattern=r"^(\d+(\.\d+)?(ms|s|m|h|d))+$", examples=["10m", "500ms"])]
Size = Annotated[str, Meta(pattern=r"^\d+(\.\d+)?\s?(B|kB|KB|KiB|MB|MiB|GB|GiB|TB|TiB)$", examples=["20GiB"])]
Engine = Literal["auto", "sglang", "vllm", "llama.cpp", "ollama", "router", "openai"]
Backend = Literal["llama.cpp", "command"]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all sections share: immutable, by name, strict."""


class Replica(Section, frozen=True):
    """An endpoint that already runs somewhere."""

    name: Name
    url: str
    models: list[Name]
    kind: Literal["generative", "single-pass"] = "generative"
    engine: Engine = "auto"
    api_key_env: str = ""
    health: str = "/health"
    load_from: list[str] = []


class LauncherModel(Section, frozen=True):
    """A model whose engine this machine starts.

    `command` may contain ${port}, ${model} and ${python}; it is never given to a shell.
    """

    name: Name
    backend: Backend
    aliases: list[Name] = []
    model_path: str = ""
    command: list[str] = []
    args: list[str] = []
    health: str = "/health"
    port: Port = 0
    instances: Annotated[int, Meta(ge=1, le=64)] = 1
    readiness_timeout: Duration = "5m"
    env: dict[str, str] = {}


class Launcher(Section, frozen=True):
    """Engines on demand. Naming a model here is the opt-in."""

    model_dir: str = "models"
    log_dir: str = ""
    stop_grace: Duration = "10s"
    models: list[LauncherModel] = []


class ToolServer(Section, frozen=True):
    """An MCP tool server for sub-agents: `command` (stdio) or `url` (streamable HTTP), one of the two."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,32}$")]
    command: list[str] = []
    url: str = ""
    env: dict[str, str] = {}
    token_env: str = ""
    timeout: Duration = "2m"


class Dataplane(Section, frozen=True):
    """The LLM door."""

    host: str = "127.0.0.1"
    port: Port = 8080
    max_body: Size = "32MiB"
    body_timeout: Duration = "1m"
    connect_timeout: Duration = "2s"


class Scheduler(Section, frozen=True):
    """The scheduler: `port` is the link for the other services, `http_port` status and page."""

    host: str = "127.0.0.1"
    port: Port = 5000
    http_port: Port = 5001
    policy: Literal["turn-admission"] = "turn-admission"
    probe_period: Duration = "2s"
    turn_timeout: Duration = "10m"
    run_idle_expiry: Duration = "30m"
    link_grace: Duration = "10s"


class Runtime(Section, frozen=True):
    """The MCP door. `dataplane_url` is where its sub-agents take their turns; empty means this process's own."""

    host: str = "127.0.0.1"
    port: Port = 7000
    state_dir: str = "state"
    dataplane_url: str = ""
    default_model: str = ""
    max_running: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    turn_timeout: Duration = "10m"


class Config(Section, frozen=True):
    """The whole file."""

    replicas: list[Replica] = []
    launcher: Launcher = Launcher()
    tools: list[ToolServer] = []
    dataplane: Dataplane = Dataplane()
    scheduler: Scheduler = Scheduler()
    runtime: Runtime = Runtime()
