"""TLS under the client: nothing is lost, cut off unnoticed or left open."""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
import trustme

from adapters.engine_http.scripted_engine import answer, eventually, run_bounded
from luftpause.adapters.engine_http.connection import AT_ONCE_BYTES
from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineBrokeError, EngineRequest, EngineUnreachableError

pytestmark = pytest.mark.usefixtures("each_loop")
AUTHORITY = trustme.CA()
LONG = bytes(range(256)) * 12_000
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\n" + LONG
MEASURED = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (len(LONG), LONG)
Script = Callable[[ssl.SSLSocket], None]


def serving() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    AUTHORITY.issue_cert("localhost").configure_cert(context)
    return context


def client(**settings: float) -> HttpEngines:
    trust = ssl.create_default_context()
    AUTHORITY.configure_trust(trust)
    return HttpEngines(tls=trust, **settings)


@dataclass
class Server:
    """Blocking sockets in a thread: the test says when TLS ends and when the socket does."""

    url: str
    accepted: int = 0
    left: threading.Event = field(default_factory=threading.Event)


@contextmanager
def server(script: Script, context: ssl.SSLContext | None = None) -> Iterator[Server]:
    listener = socket.create_server(("127.0.0.1", 0))
    seen = Server(f"https://localhost:{listener.getsockname()[1]}")
    tls = context or serving()

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            seen.accepted += 1
            plain.settimeout(15)
            with contextlib.suppress(OSError), tls.wrap_socket(plain, server_side=True) as secured:
                script(secured)
            plain.close()
            seen.left.set()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(15)


def request(body: bytes = b"{}") -> EngineRequest:
    return EngineRequest(method=b"POST", path=b"/", headers=(), body=body)


def whole_request(connection: ssl.SSLSocket, length: int = 2) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received or len(received.partition(b"\r\n\r\n")[2]) < length:
        piece = connection.recv(65536)
        assert piece
        received += piece
    return received.partition(b"\r\n\r\n")[2]


async def read_slowly(engines: HttpEngines, url: str) -> bytes:
    exchange = await engines.send(Endpoint(url=url), request())
    body = bytearray()
    try:
        while piece := await exchange.read():
            body += piece
            for _ in range(20):  # its reader is slow: the engine's end is here before all was read
                await asyncio.sleep(0)
    finally:
        exchange.close()
        await engines.close()
    return bytes(body)


@pytest.mark.parametrize("says_goodbye", [True, False])
@pytest.mark.parametrize("raw", [UNTIL_CLOSE, MEASURED], ids=["until close", "measured"])
def test_a_slow_reader_gets_every_byte_of_an_engine_that_closes_at_once(raw: bytes, says_goodbye: bool) -> None:
    def script(connection: ssl.SSLSocket) -> None:
        whole_request(connection)
        connection.sendall(raw)
        if says_goodbye:
            connection.unwrap()

    with server(script) as seen:
        if raw is UNTIL_CLOSE and not says_goodbye:  # whoever cuts the line could have shortened it
            with pytest.raises(EngineBrokeError, match="before the end of its answer, without TLS's goodbye"):
                run_bounded(read_slowly(client(), seen.url))
        else:
            assert run_bounded(read_slowly(client(), seen.url)) == LONG


def test_a_large_body_arrives_whole_and_the_connection_is_kept() -> None:
    received = []

    def script(connection: ssl.SSLSocket) -> None:
        for _ in range(2):
            received.append(whole_request(connection, len(LONG)))
            connection.sendall(answer(b"ok"))
        connection.recv(1)

    async def main(url: str) -> None:
        engines = client()
        for _ in range(2):
            exchange = await engines.send(Endpoint(url=url), request(LONG))
            assert await exchange.read() == b"ok"
            exchange.close()
        await engines.close()

    with server(script) as seen:
        run_bounded(main(seen.url))
        assert seen.left.wait(15), "closing the client closes its kept connection"
    assert received == [LONG, LONG]
    assert seen.accepted == 1


def test_giving_up_closes_the_connection() -> None:
    begun = threading.Event()

    def script(connection: ssl.SSLSocket) -> None:
        whole_request(connection)
        begun.set()
        connection.recv(1)

    async def main(url: str) -> None:
        engines = client()
        asking = asyncio.create_task(engines.send(Endpoint(url=url), request()))
        await eventually(begun.is_set)
        asking.cancel()
        await asyncio.wait([asking])
        await eventually(seen.left.is_set)
        await engines.close()

    with server(script) as seen:
        run_bounded(main(seen.url))


def test_a_kept_connection_that_the_engine_closes_is_replaced() -> None:
    def script(connection: ssl.SSLSocket) -> None:
        whole_request(connection)
        connection.sendall(answer(b"ok"))

    async def main(url: str) -> None:
        engines = client()
        for _ in range(3):
            exchange = await engines.send(Endpoint(url=url), request())
            assert await exchange.read() == b"ok"
            exchange.close()
        await engines.close()

    with server(script) as seen:
        run_bounded(main(seen.url))
        assert seen.accepted == 3


def test_a_server_that_never_shakes_hands_is_given_up_and_its_socket_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(15)
        url = f"https://localhost:{listener.getsockname()[1]}"
        with pytest.raises(EngineUnreachableError, match=r"over TLS timed out after 0.1 s"):
            run_bounded(client(connect_timeout_s=0.1).send(Endpoint(url=url), request()))
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(15)
            with contextlib.suppress(ConnectionError):
                while connection.recv(65536):
                    pass


def shakes_hands_and_leaves(listener: socket.socket, context: ssl.SSLContext) -> None:
    """Say goodbye in the very bytes that end the handshake."""
    with listener.accept()[0] as plain:
        plain.settimeout(15)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        is_shaken = False
        while not is_shaken:
            try:
                tls.do_handshake()
                is_shaken = True
            except ssl.SSLWantReadError:
                plain.sendall(outgoing.read())
                incoming.write(plain.recv(65536))
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.unwrap()
        plain.sendall(outgoing.read())


@pytest.mark.parametrize("body", [b"{}", b"x" * 2 * AT_ONCE_BYTES], ids=["short", "long"])
def test_a_server_that_leaves_as_the_handshake_ends_is_not_waited_for(body: bytes) -> None:
    context = serving()
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # there the server has the last word of it

    async def main(url: str) -> None:
        engines = client()
        with pytest.raises(EngineUnreachableError, match="closed the connection before answering"):
            await engines.send(Endpoint(url=url), request(body))
        await engines.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=shakes_hands_and_leaves, args=(listener, context), daemon=True)
        thread.start()
        run_bounded(main(f"https://localhost:{listener.getsockname()[1]}"))
        thread.join(15)


def test_a_server_that_leaves_during_the_handshake_is_named() -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def leave() -> None:
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.close()

    thread = threading.Thread(target=leave)
    thread.start()
    url = f"https://localhost:{listener.getsockname()[1]}"
    with (
        listener,
        pytest.raises(EngineUnreachableError, match=r"cannot connect to localhost:\d+: it closed the .* handshake"),
    ):
        run_bounded(client().send(Endpoint(url=url), request()))
    thread.join(15)


def test_an_engine_that_falls_out_of_tls_is_named() -> None:
    def script(connection: ssl.SSLSocket) -> None:
        whole_request(connection)
        with socket.socket(fileno=connection.detach()) as plain:
            plain.sendall(b"\x17\x03\x03\x00\x14" + bytes(20))
            plain.recv(1)

    with server(script) as seen, pytest.raises(EngineUnreachableError, match="ended TLS before answering: decryption"):
        run_bounded(client().send(Endpoint(url=seen.url), request()))
