"""An engine without a model: answers its health path, or misbehaves as told. Run as a program."""

import argparse
import os
import signal
import socketserver
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    """200 once loaded, 503 before; `/turn` is never answered, and with `hangs_in_turns` nothing else is then."""

    ready_at = 0.0
    hangs_in_turns = ""
    is_hung = threading.Event()
    answer_delay_s = 0.0

    def do_GET(self) -> None:
        """Answer every path alike, but for turns."""
        if self.path == "/turn":
            self.is_hung.set()
        while self.hangs_in_turns and self.is_hung.is_set():
            if self.hangs_in_turns == "idle":
                time.sleep(1)
        time.sleep(self.answer_delay_s)
        self.send_response(200 if time.monotonic() >= self.ready_at else 503)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main() -> int:
    """Serve until signalled, or end as told."""
    options = options_of()
    if options.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.pid_file:
        options.pid_file.write_text(str(os.getpid()))
    if options.count:
        with options.count.open("a") as file:
            file.write("x")
    if options.fail or (options.fail_unless and not options.fail_unless.exists()):
        time.sleep(options.fail_after_s)
        sys.stderr.write(f"{options.fail or 'not yet'}\n")
        return int(options.code)
    if options.wrap:
        rest = [word for word in sys.argv[1:] if word != "--wrap"]
        return subprocess.call([sys.executable, __file__, *rest])
    if options.fork and os.fork():
        time.sleep(60)
    held = bytearray(os.urandom(4096) * (options.memory_mib * 256))
    for percent in range(0, 101, 10) if options.talks else ():
        sys.stdout.write(f"loading weights: {percent}% done\n")
        sys.stdout.flush()
        time.sleep(options.load_s / 11)
    Handler.ready_at = time.monotonic() + (0.0 if options.talks else options.load_s)
    Handler.answer_delay_s = options.answer_delay_s
    Handler.hangs_in_turns = options.hangs_in_turns
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    if not options.silent:
        server = socketserver.ThreadingTCPServer(("127.0.0.1", options.port), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    while held is not None:
        time.sleep(1)
    return 0


def options_of() -> argparse.Namespace:
    """Return how it is to behave."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--load-s", type=float, default=0.0, help="until it is ready")
    parser.add_argument("--talks", action="store_true", help="tells how far it is, and listens only then")
    parser.add_argument("--fail", default="", help="its last words")
    parser.add_argument("--fail-after-s", type=float, default=0.0)
    parser.add_argument("--fail-unless", type=Path, help="fails unless this exists")
    parser.add_argument("--code", type=int, default=1, help="exit status of a failure")
    parser.add_argument("--count", type=Path, help="a letter is appended here at each start")
    parser.add_argument("--ignore-term", action="store_true")
    parser.add_argument("--fork", action="store_true", help="a child serves, the parent only sleeps")
    parser.add_argument("--wrap", action="store_true", help="another program of it serves, as behind a shell script")
    parser.add_argument("--silent", action="store_true", help="never listens")
    parser.add_argument("--memory-mib", type=int, default=0, help="takes so much")
    parser.add_argument("--pid-file", type=Path)
    parser.add_argument("--answer-delay-s", type=float, default=0.0)
    parser.add_argument("--hangs-in-turns", choices=("idle", "busy"), default="", help="and works meanwhile, or not")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
