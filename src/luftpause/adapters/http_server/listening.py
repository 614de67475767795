"""Sockets that listen for a door: taken alone, or shared by the processes that serve one port together.

It knows addresses and what the system answers, not what is spoken on them.
"""

import asyncio
import errno
import socket
from typing import Final

BACKLOG: Final = 2048


class CannotListenError(Exception):
    """The address cannot be listened on. The message names it and the way out."""


class AddressInUseError(CannotListenError):
    """Something else listens there."""


async def listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a socket that listens, on a free port for 0.

    Args:
        host: name or address.
        port: 0 picks a free one.
        shared: listen beside other processes of this user, on a port that one of them has reserved. The kernel gives
            each connection to one of them.

    Raises:
        AddressInUseError: the port is taken.
        CannotListenError: the address cannot be bound for another reason.
    """
    return await _bind(host, port, listens=True, shared=shared)


async def reserve(host: str, port: int) -> socket.socket:
    """Return a socket that keeps a port for processes that listen there `shared`, and gets no connections itself.

    While it is open no other program can listen there unless it asks to share, too.

    Raises:
        AddressInUseError: somebody listens there, be it in order to share.
        CannotListenError: the address cannot be bound for another reason.
    """
    holder = await _bind(host, port, listens=False, shared=False)
    # Only once it is bound: had it asked to share before, it would have joined strangers that share already.
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return holder


def address_of(host: str, port: int) -> str:
    """Return host and port as they stand in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def _bind(host: str, port: int, *, listens: bool, shared: bool) -> socket.socket:
    address = address_of(host, port)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except socket.gaierror as error:
        raise CannotListenError(f"cannot listen on {address}: {error.strerror or error}") from error
    family, kind, protocol, _, target = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(target)
        if listens:
            listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressInUseError(
                f"{address} is already in use: stop what listens there or choose another port (0 picks a free one)"
            ) from error
        raise CannotListenError(f"cannot listen on {address}: {error.strerror}") from error
    return listener
