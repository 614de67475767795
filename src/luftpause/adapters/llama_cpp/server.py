"""llama.cpp's own HTTP server from the library `xllamacpp`, as a process that is called like `llama-server`.

`python -m luftpause.adapters.llama_cpp.server -m MODEL --port PORT …` takes the options that the launcher uses and
refuses all others. It ends at once on SIGTERM, and when its parent ends, unless its launcher sees to that.
"""

import argparse
import importlib
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Final, Protocol

from luftpause.adapters.tether import WORD_VARIABLE

KEY_VARIABLE: Final = "LLAMA_API_KEY"
"""As with `llama-server`: the key that requests must name, but for its health."""
_GGUF: Final = b"GGUF"
_PORT_MAX: Final = 65535
_PARENT_CHECK_S: Final = 0.5


class UnusableError(Exception):
    """The model or the port cannot be used; the message says why in one line."""


class Server(Protocol):
    """The library's running server. It stops when it is collected."""

    listening_address: str


def main(arguments: list[str] | None = None) -> int:
    """Serve until told to stop. Return 1 after one line on stderr when model or port are unusable."""
    parent = os.getppid()
    options = options_of(arguments)
    try:
        _check(options)
        # Kept in a variable: the server stops when it is collected.
        server = serve(options)
    except UnusableError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    # Until here the default action ended the process, also in the middle of loading.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    sys.stderr.write(f"listening on {server.listening_address}\n")
    _wait_for_parent(parent)
    os._exit(0)


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options; None reads the process's own arguments. Exits with 2 on those it does not know."""
    parser = argparse.ArgumentParser(prog="luftpause.adapters.llama_cpp.server", allow_abbrev=False)
    add = parser.add_argument
    add("-m", "--model", type=Path, required=True, help="GGUF file")
    add("--host", default="127.0.0.1", help="address to listen on")
    add("--port", type=int, required=True, help="port to listen on")
    add("--alias", default="", help="name reported for the model")
    add("--parallel", type=int, default=4, help="requests decoded at once")
    add("-c", "--ctx-size", type=int, default=16384, help="tokens of context, shared by the parallel requests")
    add("-t", "--threads", type=int, default=1, help="threads to compute with")
    add("--temp", type=float, default=None, help="temperature of requests that name none")
    add("--cache-ram", type=int, default=None, help="MiB of memory for prompts that left their slot; 0 for none")
    add("--slot-save-path", type=Path, default=None, help="folder that slots may be saved to and restored from")
    add("--metrics", action="store_true", help="serve /metrics")
    add("--slots", action="store_true", help="serve /slots")
    add("--jinja", action="store_true", help="use the whole chat template, tools included")
    add("--chat-template-file", type=Path, default=None, help="chat template instead of the model's own")
    return parser.parse_args(arguments)


def _check(options: argparse.Namespace) -> None:
    try:
        with open(options.model, "rb") as file:
            magic = file.read(len(_GGUF))
    except OSError as error:
        raise UnusableError(f"cannot read model {str(options.model)!r}: {error.strerror}") from error
    if magic != _GGUF:
        raise UnusableError(f"{str(options.model)!r} is no GGUF file")
    if not 0 < options.port <= _PORT_MAX:
        raise UnusableError(f"there is no port {options.port}; expected 1 to {_PORT_MAX}")
    try:
        with socket.create_server((options.host, options.port)):
            pass
    except OSError as error:
        raise UnusableError(f"cannot listen on {options.host}:{options.port}: {error}") from error


def serve(options: argparse.Namespace) -> Server:
    """Load the model and begin to serve it, in threads of the library.

    Raises:
        UnusableError: the library is missing or refuses the model, or the chat template cannot be read.
    """
    try:
        library = importlib.import_module("xllamacpp")
    except ImportError as error:
        raise UnusableError(f"xllamacpp is not installed: {error}") from error
    params = library.CommonParams()
    params.model.path = str(options.model)
    params.hostnames = [options.host]
    params.port = options.port
    params.n_parallel = options.parallel
    params.n_ctx = options.ctx_size
    params.cpuparams.n_threads = options.threads
    params.endpoint_metrics = options.metrics
    params.endpoint_slots = options.slots
    params.use_jinja = options.jinja
    if key := os.environ.get(KEY_VARIABLE):
        params.api_keys = [key]
    if options.alias:
        params.model_alias = {options.alias}
    if options.temp is not None:
        params.sampling.temp = options.temp
    if options.cache_ram is not None:
        params.cache_ram_mib = options.cache_ram
    if options.slot_save_path is not None:
        params.slot_save_path = f"{options.slot_save_path}{os.sep}"
    if options.chat_template_file is not None:
        params.chat_template = _template(options.chat_template_file)
    try:
        server: Server = library.Server(params)
    except RuntimeError as error:
        raise UnusableError(f"llama.cpp did not start: {error}") from error
    return server


def _template(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableError(f"cannot read chat template {str(path)!r}: {error}") from error


def _wait_for_parent(parent: int) -> None:
    # On Linux a launcher has the kernel end what it starts, or the next launcher adopt it.
    is_seen_to = sys.platform == "linux" and WORD_VARIABLE in os.environ
    while is_seen_to or os.getppid() == parent:
        threading.Event().wait(_PARENT_CHECK_S)


def _end(number: int, frame: object) -> None:
    # Nothing is worth saving, and joining the library's threads could outlast the launcher's patience.
    del number, frame
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
