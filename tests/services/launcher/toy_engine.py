"""An engine without a model: answers its health path, or misbehaves as told. Run as a program."""

import argparse
import os
import signal
import socketserver
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    """200 once loaded, 503 before."""

    ready_at = 0.0

    def do_GET(self) -> None:
        """Answer every path alike."""
        self.send_response(200 if time.monotonic() >= self.ready_at else 503)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main() -> int:
    """Serve until signalled, or end as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--load-s", type=float, default=0.0)
    parser.add_argument("--fail", default="")
    parser.add_argument("--fail-unless", type=Path)
    parser.add_argument("--ignore-term", action="store_true")
    parser.add_argument("--fork", action="store_true")
    options = parser.parse_args()
    if options.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.fail or (options.fail_unless and not options.fail_unless.exists()):
        sys.stderr.write(f"{options.fail or 'not yet'}\n")
        return 1
    if options.fork and os.fork():
        time.sleep(60)
    Handler.ready_at = time.monotonic() + options.load_s
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    server = socketserver.ThreadingTCPServer(("127.0.0.1", options.port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while True:
        time.sleep(1)


if __name__ == "__main__":
    sys.exit(main())
