"""Raw ends of the wire for the stories: a scripted engine, a client that sends what it is told, short waits."""

import contextlib
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

ANSWER = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}'
CHAT = "/v1/chat/completions"
WAIT_S = 10.0
TLS_HELLO = b"\x16\x03"

_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)


def whole(body: bytes = ANSWER) -> bytes:
    """Return a whole 200 answer."""
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def chat_body(text: str = "hi", model: str = "fake") -> bytes:
    """Return a chat request body."""
    return json.dumps({"model": model, "messages": [{"role": "user", "content": text}]}).encode()


def soon(found: Callable[[], bool], within_s: float = WAIT_S) -> bool:
    """Return whether it became true in time."""
    deadline = time.monotonic() + within_s
    pause = threading.Event()
    while not found():
        if time.monotonic() > deadline:
            return False
        pause.wait(0.02)
    return True


@dataclass
class Engine:
    """An engine that answers each POST with what `reply` returns for its body. `load` is running and waiting.

    `get` may answer a GET by its head; it returns None to leave that to the engine. With `tls` it speaks TLS and is
    called localhost. `heads` and `bodies` are what was posted, `gets` the heads of what was asked for, `connections`
    how many were accepted.
    """

    reply: Callable[[bytes], bytes] = lambda _: whole()
    load: tuple[int, int] | None = None
    get: Callable[[bytes], bytes | None] = lambda _: None
    tls: ssl.SSLContext | None = None
    bodies: list[bytes] = field(default_factory=list)
    heads: list[bytes] = field(default_factory=list)
    gets: list[bytes] = field(default_factory=list)
    connections: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._open: list[socket.socket] = []
        port = self._listener.getsockname()[1]
        self.url = f"https://localhost:{port}" if self.tls else f"http://127.0.0.1:{port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Accept nobody any more and leave those that are here."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        try:
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
        except OSError:
            return

    def _serve(self, plain: socket.socket) -> None:
        try:
            with plain if self.tls is None else self.tls.wrap_socket(plain, server_side=True) as connection:
                while (received := _request(connection)) is not None and self.answer(connection, *received):
                    pass
                if isinstance(connection, ssl.SSLSocket):
                    connection.unwrap()
        except OSError:  # ssl.SSLError is one
            plain.close()

    def answer(self, connection: socket.socket, head: bytes, body: bytes) -> bool:
        """Answer one request; return whether the connection is kept, which the answer's header says."""
        answer = self._answer(head, body)
        connection.sendall(answer)
        return b"\r\nconnection: close\r\n" not in answer.partition(b"\r\n\r\n")[0] + b"\r\n"

    def _answer(self, head: bytes, body: bytes) -> bytes:
        if head.startswith(b"POST"):
            self.heads.append(head)
            self.bodies.append(body)
            return self.reply(body)
        self.gets.append(head)
        own = self.get(head)
        if own is not None:
            return own
        if head.startswith(b"GET /metrics") and self.load is not None:
            running, waiting = self.load
            page = f"vllm:num_requests_running {running}\nvllm:num_requests_waiting {waiting}\n"
            return whole(page.encode())
        if head.startswith(b"GET /metrics"):
            return b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
        return whole(b"{}")


def _request(connection: socket.socket) -> tuple[bytes, bytes] | None:
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65536)
        if not piece:
            return None
        received += piece
        if received.startswith(TLS_HELLO):
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            return None
    head, _, body = received.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    while length is not None and len(body) < int(length[1]):
        piece = connection.recv(65536)
        if not piece:
            return None
        body += piece
    return head, body


@dataclass(frozen=True)
class Answer:
    """What a door said; `status` 0 means nothing came in time."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def unchunked(body: bytes) -> bytes:
    """Return a chunked body's content; one that is not chunked as it is."""
    content, rest = b"", body
    while True:
        size, found, rest = rest.partition(b"\r\n")
        try:
            length = int(size, 16)
        except ValueError:
            return content or body
        content, rest = content + rest[:length], rest[length + 2 :]
        if not found or not length:
            return content


def ask(
    door: str,
    body: bytes = b"",
    *lines: str,
    start: str = f"POST {CHAT} HTTP/1.1",
    host: str = "127.0.0.1",
    within_s: float = WAIT_S,
) -> Answer:
    """Send a request with these header lines to a door and return its answer."""
    name, port = door.removeprefix("http://").split(":")
    head = [start, f"host: {host}", *lines]
    if start.startswith("POST"):
        head += ["content-type: application/json", f"content-length: {len(body)}"]
    received = bytearray()  # of many megabytes, adding to bytes would copy them each time
    deadline = time.monotonic() + within_s
    with socket.create_connection((name, int(port)), timeout=within_s) as connection:
        connection.sendall("\r\n".join((*head, "connection: close", "", "")).encode("latin-1") + body)
        try:
            while piece := connection.recv(65536):
                received += piece
                connection.settimeout(max(0.01, deadline - time.monotonic()))
        except (TimeoutError, ConnectionResetError):
            return Answer(0, {}, bytes(received))
    top, _, rest = bytes(received).partition(b"\r\n\r\n")
    first, *fields = top.decode("latin-1").split("\r\n")
    pairs = {key.lower(): value for key, _, value in (line.partition(": ") for line in fields)}
    return Answer(int(first.split()[1]) if first else 0, pairs, rest)


def status(scheduler: str) -> dict[str, list[dict[str, object]]]:
    """Return the scheduler's status."""
    found: dict[str, list[dict[str, object]]] = json.loads(ask(scheduler, start="GET /status HTTP/1.1").body)
    return found
