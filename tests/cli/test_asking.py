"""Where the scheduler is asked from the command line."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from luftpause.cli import asking
from luftpause.cli.asking import answer_of, configured_url
from luftpause.cli.failures import CommandFailedError


def test_the_address_is_that_of_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "luftpause.toml"
    file.write_text('[scheduler]\nhost = "::1"\nhttp_port = 7\n')
    assert configured_url(file) == "http://[::1]:7"
    file.write_text('[scheduler]\nhost = "0.0.0.0"\nhttp_port = 7\n')
    assert configured_url(file) == "http://127.0.0.1:7"
    file.write_text("[scheduler]\nhttp_port = 0\n")
    with pytest.raises(CommandFailedError, match="give the one that `luftpause up` prints"):
        configured_url(file)


@pytest.mark.parametrize("address", ["ftp://x", "http://", "http://[::1", "nonsense"])
def test_what_is_no_address_is_said_so(address: str) -> None:
    with pytest.raises(CommandFailedError, match="is no url"), answer_of(address, "GET", "/models", {}):
        pass


@contextmanager
def dripping(head: bytes) -> Iterator[str]:
    """A server that sends a head and then a byte every now and then, for ever."""
    over = threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(head)
            while not over.wait(0.01):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            thread.join(10)


@pytest.mark.parametrize(
    "head",
    [b"", b"HTTP/1.1 200 OK\r\nx-", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 999999\r\n\r\n"],
)
def test_a_server_that_drips_is_not_listened_to_for_ever(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "WHOLE_S", 0.2)
    with (
        dripping(head) as address,
        pytest.raises(CommandFailedError, match="did not answer whole within"),
        answer_of(address, "GET", "/status", {}) as response,
    ):
        response.read()
