"""Asking the scheduler's HTTP door from the command line: where it is, with which token, and what went wrong."""

import http.client
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from luftpause.cli.failures import CommandFailedError
from luftpause.config.check import EVERYWHERE
from luftpause.config.load import load

ANSWER_BYTES_MAX = 8 << 20
TIMEOUT_S = 5.0
"""For each piece of an answer."""
WHOLE_S = 20.0
"""For a whole answer, however it comes."""
FOLLOW_S = 3700.0
"""For each piece of one that goes on."""
TOKEN_ENV = "LUFTPAUSE_TOKEN"


def configured_url(config: Path | None) -> str:
    """Return the scheduler's address as the configuration tells it.

    Raises:
        CommandFailedError: it does not.
    """
    scheduler = load(config, os.environ, {}).config.scheduler
    if not scheduler.http_port:
        raise CommandFailedError(
            "scheduler.http_port is 0, so the configuration does not tell the scheduler's address;"
            " give the one that `luftpause up` prints as status with --url"
        )
    return url_of(scheduler.host, scheduler.http_port)


def url_of(host: str, port: int) -> str:
    """Return how a door that listens at `host` is reached from this machine."""
    reachable = "127.0.0.1" if host in EVERYWHERE else host
    return f"http://{f'[{reachable}]' if ':' in reachable else reachable}:{port}"


class _Deadline:
    """Ends a connection that is still open after so long; None for never."""

    def __init__(self, whole_s: float | None) -> None:
        self._whole_s = whole_s
        self._timer: threading.Timer | None = None
        self.has_passed = False

    def set_for(self, sock: socket.socket) -> None:
        """Begin to count."""
        if self._whole_s is not None:
            self._timer = threading.Timer(self._whole_s, self._pass, (sock,))
            self._timer.daemon = True
            self._timer.start()

    def unset(self) -> None:
        """Count no longer."""
        if self._timer is not None:
            self._timer.cancel()

    def _pass(self, sock: socket.socket) -> None:
        self.has_passed = True
        with suppress(OSError):  # it has just ended by itself
            socket.socket.shutdown(sock, socket.SHUT_RDWR)


@contextmanager
def answer_of(
    address: str, method: str, path: str, env: Mapping[str, str], *, follows: bool = False
) -> Iterator[http.client.HTTPResponse]:
    """Ask below an address and yield the answer, whatever its status but 401. Sends the token of LUFTPAUSE_TOKEN.

    The answer has to be whole within WHOLE_S, unless it `follows` what goes on: then it may take as long as it likes.

    Raises:
        CommandFailedError: nothing answers there, or not in time, or it wants another token.
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise CommandFailedError(f"{address} is no url: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CommandFailedError(f"{address} is no url; write it like http://127.0.0.1:5001")
    make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    deadline = _Deadline(None if follows else WHOLE_S)
    connection = make(parts.hostname, port, timeout=FOLLOW_S if follows else TIMEOUT_S)
    headers = {"accept": "application/json"}
    token = env.get(TOKEN_ENV, "").strip()
    if token:
        headers["authorization"] = f"Bearer {token}"
    try:
        connection.connect()
        deadline.set_for(connection.sock)
        connection.request(method, f"{parts.path.rstrip('/').removesuffix('/status')}{path}", headers=headers)
        response = connection.getresponse()
        if response.status == http.client.UNAUTHORIZED:
            raise CommandFailedError(
                f"{address} refuses the token that {TOKEN_ENV} holds"
                if token
                else f"{address} wants a token; set {TOKEN_ENV}"
            )
        yield response
        if deadline.has_passed:
            raise TimeoutError
    except (OSError, http.client.HTTPException, ValueError) as error:
        if deadline.has_passed:
            raise CommandFailedError(f"{address} did not answer whole within {WHOLE_S:g} s") from None
        raise CommandFailedError(
            f"no scheduler answers at {address} ({error}); start one with `luftpause up`"
        ) from None
    finally:
        deadline.unset()
        connection.close()
