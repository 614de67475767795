"""The command line of llama.cpp's HTTP server for one model. Pure; starts nothing and looks at no file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PARALLEL: Final = 4
"""Turns that one engine decodes at once."""
CONTEXT_TOKENS: Final = 16384
"""Shared by the turns that run at once, so 4096 for each."""
THREADS: Final = 1
"""Per engine. Engines with more threads than the machine has cores for spin on each other's barriers."""
TOOL_TEMPERATURE: Final = 0.3
"""Of requests that name none, when our template is used: the small model that it is for rambles at the usual 0.8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """What differs from one engine to the next.

    Attributes:
        model: the GGUF file.
        port: where it listens: a number, or a placeholder for one.
        alias: the name that it reports for its model.
        host: the address that it listens on.
        template: file of the chat template that replaces the model's own.
    """

    model: Path
    port: str
    alias: str
    host: str = "127.0.0.1"
    template: Path | None = None
    threads: int = THREADS


def server_arguments(options: ServerOptions, args: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the arguments that follow the program; `args` come last, so that they win where one repeats."""
    own = [
        *("-m", str(options.model)),
        *("--host", options.host),
        *("--port", options.port),
        *("--alias", options.alias),
        *("--parallel", str(PARALLEL)),
        *("-c", str(CONTEXT_TOKENS)),
        *("-t", str(options.threads)),
        "--metrics",
        "--slots",
        "--jinja",
    ]
    if options.template is not None:
        own += ["--chat-template-file", str(options.template), "--temp", str(TOOL_TEMPERATURE)]
    return (*own, *args)
