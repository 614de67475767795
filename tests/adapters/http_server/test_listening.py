"""A port that several processes serve: reserved once, joined by them, closed to everybody else."""

import contextlib
import socket
import sys
from collections.abc import Iterator

import pytest

from adapters.engine_http.scripted_engine import run_bounded
from luftpause.adapters.http_server.listening import AddressInUseError, CannotListenError, address_of, listen, reserve

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shares connections out")
HOST = "127.0.0.1"
TRIES = 40


def port_of(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def accepted(listener: socket.socket) -> int:
    """Return how many connections wait, and hang up on them."""
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
            count += 1
    return count


@contextlib.contextmanager
def connections(port: int) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for _ in range(TRIES):
            stack.enter_context(socket.create_connection((HOST, port), timeout=5))
        yield


@linux
def test_those_that_share_a_reserved_port_each_get_connections() -> None:
    async def main() -> None:
        with await reserve(HOST, 0) as holder:
            port = port_of(holder)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((HOST, port), timeout=5)
            with await listen(HOST, port, shared=True) as one, await listen(HOST, port, shared=True) as two:
                with connections(port):
                    shares = (accepted(one), accepted(two))
                assert sum(shares) == TRIES
                assert min(shares) > 0, "one of them got nothing"
            with await listen(HOST, port, shared=True) as again, connections(port):
                assert accepted(again) == TRIES

    run_bounded(main())


@linux
def test_a_port_that_others_share_is_taken() -> None:
    async def main() -> None:
        with await reserve(HOST, 0) as holder:
            port = port_of(holder)
            with await listen(HOST, port, shared=True):
                for take in (reserve, listen):
                    with pytest.raises(AddressInUseError, match="already in use"):
                        await take(HOST, port)

    run_bounded(main())


@linux
def test_a_reserved_port_is_nobody_elses_even_while_nobody_listens_there() -> None:
    async def main() -> None:
        with await reserve(HOST, 0) as holder:
            port = port_of(holder)
            with pytest.raises(AddressInUseError):
                await listen(HOST, port)
        with await listen(HOST, port) as free:
            assert port_of(free) == port

    run_bounded(main())


def test_an_address_that_is_not_ours_is_named() -> None:
    async def main() -> None:
        with pytest.raises(CannotListenError, match=r"cannot listen on 192\.0\.2\.1:0"):
            await listen("192.0.2.1", 0)

    run_bounded(main())


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1:80"), ("::1", "[::1]:80")])
def test_an_address_stands_in_a_url(host: str, shown: str) -> None:
    assert address_of(host, 80) == shown
