"""Asking the scheduler's HTTP door from the command line: where it is, with which token, and what went wrong."""

import http.client
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from luftpause.cli.failures import CommandFailedError
from luftpause.config.check import EVERYWHERE
from luftpause.config.load import load

ANSWER_BYTES_MAX = 8 << 20
TIMEOUT_S = 5.0
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


@contextmanager
def answer_of(
    address: str, method: str, path: str, env: Mapping[str, str], *, timeout_s: float = TIMEOUT_S
) -> Iterator[http.client.HTTPResponse]:
    """Ask below an address and yield the answer, whatever its status but 401. Sends the token of LUFTPAUSE_TOKEN.

    Raises:
        CommandFailedError: nothing answers there, or it wants another token.
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise CommandFailedError(f"{address} is no url: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CommandFailedError(f"{address} is no url; write it like http://127.0.0.1:5001")
    make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = make(parts.hostname, port, timeout=timeout_s)
    headers = {"accept": "application/json"}
    token = env.get(TOKEN_ENV, "").strip()
    if token:
        headers["authorization"] = f"Bearer {token}"
    try:
        connection.request(method, f"{parts.path.rstrip('/').removesuffix('/status')}{path}", headers=headers)
        response = connection.getresponse()
        if response.status == http.client.UNAUTHORIZED:
            raise CommandFailedError(f"{address} wants a token; set {TOKEN_ENV}")
        yield response
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise CommandFailedError(
            f"no scheduler answers at {address} ({error}); start one with `luftpause up`"
        ) from None
    finally:
        connection.close()
