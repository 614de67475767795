import asyncio
import socket

from adapters.engine_http.scripted_engine import run_bounded
from luftpause.adapters.http_server import accepting
from luftpause.adapters.http_server.accepting import Acceptor
from luftpause.adapters.http_server.listening import listen


class Greeter(asyncio.Protocol):
    """Greets whoever is connected."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"welcome")
        transport.close()


def clients(listener: socket.socket, number: int) -> list[socket.socket]:
    """Connect so many: the kernel does it, nobody has taken them yet."""
    return [socket.create_connection(listener.getsockname(), timeout=5) for _ in range(number)]


async def greeting(client: socket.socket) -> bytes:
    reader, writer = await asyncio.open_connection(sock=client)
    try:
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def test_one_connection_that_the_loop_takes_brings_along_all_that_wait() -> None:
    async def main() -> None:
        listener = await listen("127.0.0.1", 0)
        waiting = clients(listener, 20)
        acceptor = Acceptor(listener, Greeter)
        taken, _ = listener.accept()  # as the loop does, before it asks for a protocol
        acceptor()
        taken.close()
        listener.close()
        assert [await greeting(client) for client in waiting[1:]] == [b"welcome"] * 19
        await acceptor.close()
        waiting[0].close()

    run_bounded(main())


def test_a_server_greets_all_of_a_crowd_larger_than_it_takes_at_once() -> None:
    async def main() -> None:
        listener = await listen("127.0.0.1", 0)
        crowd = clients(listener, accepting.AT_ONCE_MAX + 70)
        acceptor = Acceptor(listener, Greeter)
        server = await asyncio.get_running_loop().create_server(acceptor, sock=listener)
        greetings = await asyncio.gather(*map(greeting, crowd))
        assert set(greetings) == {b"welcome"}
        server.close()
        await acceptor.close()
        await server.wait_closed()

    run_bounded(main())


def test_a_listener_without_a_crowd_takes_no_more_than_it_was_given() -> None:
    async def main() -> None:
        listener = await listen("127.0.0.1", 0)
        acceptor = Acceptor(listener, Greeter)
        assert isinstance(acceptor(), Greeter)
        await acceptor.close()
        listener.close()

    run_bounded(main())
