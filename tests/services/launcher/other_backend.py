"""A stand-in for `vllm` (0.32) and `sglang` (0.5.23): takes the options that they take, and is up when and as they are.

Run as a program: `other_backend.py vllm|sglang ARGUMENTS`. Weights are whatever lies at the model's path.
"""

import argparse
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LOAD_S = 0.2


class Handler(BaseHTTPRequestHandler):
    """Health, models and counters."""

    names: tuple[str, ...] = ()
    key = ""
    measures = True
    ready_at = 0.0

    def do_GET(self) -> None:
        """Answer."""
        if self.path == "/health":
            self.answer(200 if time.monotonic() >= self.ready_at else 503, b"")
        elif self.key and self.headers.get("authorization") != f"Bearer {self.key}":
            self.answer(401, b"")
        elif self.path == "/v1/models":
            rows = [{"id": name, "object": "model", "owned_by": "x"} for name in self.names]
            self.answer(200, json.dumps({"object": "list", "data": rows}).encode())
        elif self.path == "/metrics" and self.measures:
            self.answer(200, b"vllm:num_requests_running 0.0\nsglang:num_running_reqs 0.0\n")
        else:
            self.answer(404, b"")

    def answer(self, status: int, body: bytes) -> None:
        """Send an answer."""
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def vllm(arguments: list[str]) -> argparse.Namespace:
    """Read what follows `vllm`. Its counters are always on."""
    parser = argparse.ArgumentParser(prog="vllm")
    serve = parser.add_subparsers(required=True).add_parser("serve")
    serve.add_argument("model_tag", nargs="?")
    serve.add_argument("--host")
    serve.add_argument("--port", type=int, default=8000)
    serve.add_argument("--served-model-name", nargs="+")
    serve.add_argument("--max-model-len", type=int)
    serve.add_argument("--enforce-eager", action="store_true")
    serve.add_argument("--scheduling-policy", choices=("fcfs", "priority"))
    options = parser.parse_args(arguments)
    options.measures = True
    options.api_key = os.environ.get("VLLM_API_KEY", "")
    return options


def sglang(arguments: list[str]) -> argparse.Namespace:
    """Read what follows `python -m sglang.launch_server`. Its counters are on where asked for."""
    parser = argparse.ArgumentParser(prog="launch_server")
    parser.add_argument("--model-path", "--model", dest="model_tag", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=30000)
    parser.add_argument("--served-model-name")
    parser.add_argument("--enable-metrics", dest="measures", action="store_true")
    parser.add_argument("--tensor-parallel-size", "--tp-size", "--tp", type=int)
    parser.add_argument("--mem-fraction-static", type=float)
    parser.add_argument("--api-key", default="")
    options = parser.parse_args(arguments)
    options.served_model_name = (options.served_model_name or options.model_tag,)
    return options


def main(backend: str, arguments: list[str]) -> int:
    """Load and serve."""
    options = vllm(arguments) if backend == "vllm" else sglang(arguments)
    if not Path(options.model_tag).exists():
        sys.stderr.write(f"OSError: {options.model_tag} is no local folder and no model on the hub\n")
        return 1
    Handler.names = tuple(options.served_model_name or (options.model_tag,))
    Handler.measures = options.measures
    Handler.key = options.api_key
    if backend == "vllm":
        time.sleep(LOAD_S)  # it listens once it is ready
    Handler.ready_at = time.monotonic() + (LOAD_S if backend == "sglang" else 0.0)
    server = ThreadingHTTPServer((options.host, options.port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while True:
        time.sleep(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
