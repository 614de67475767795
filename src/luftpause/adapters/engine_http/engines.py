"""`ports.engines.Engines` over HTTP/1.1 with kept connections.

Redirects are never followed, keys go only to the endpoint they are configured for, answers are asked for
uncompressed. There is no limit on how long an answer takes: cancel `send` or close the exchange to give up.
"""

import asyncio
import logging
import select
import socket
import ssl
from functools import partial
from typing import Final

from luftpause.adapters.engine_http.connection import READ_BYTES, Connection, Owner
from luftpause.adapters.engine_http.exchange import HttpExchange
from luftpause.adapters.engine_http.origin import Origin, parse_origin
from luftpause.adapters.engine_http.pool import DISTRUST_S, Pool
from luftpause.adapters.engine_http.request_head import RequestHeads
from luftpause.adapters.engine_http.tls import TlsProtocol, TlsSocket
from luftpause.adapters.engine_http.trust import default_trust, tls_fault
from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineRequest, Engines, EngineUnreachableError

CONNECT_TIMEOUT_S: Final = 2.0
IDLE_S: Final = 4.0
"""Kept connections live this long: SGLang closes its own after 5 s."""

_TIMED_OUT: Final = 408
_READABLE: Final = select.POLLIN
_LOGGER: Final = logging.getLogger("luftpause.engines")

PoolKey = tuple[bool, str, int]


class HttpEngines(Engines, Owner):
    """Speaks HTTP to engines.

    Args:
        connect_timeout_s: how long a connection may take to stand, TLS included, seconds.
        idle_s: how long a connection is kept without a request, seconds.
        tls: for https endpoints; None means the authorities of the system, or those that SSL_CERT_FILE names.
    """

    def __init__(
        self,
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        idle_s: float = IDLE_S,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._idle_s = idle_s
        self._tls = tls
        self._pools: dict[PoolKey, Pool] = {}
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._secure_buffer = memoryview(bytearray(READ_BYTES))
        self._look = select.poll()
        self._heads = RequestHeads()
        self._closed = False

    async def send(self, endpoint: Endpoint, request: EngineRequest) -> HttpExchange:
        """Send a request and return when status and headers have arrived. Cancelling closes the connection.

        A kept connection that closes at once, without a byte of an answer, was closed by the engine before the
        request reached it: the request is sent once more, on a fresh connection. So it is where what came at once is no
        answer to it. After the time that a connection may take, the engine had it and may have worked at it: a turn
        that killed one is not given to the next. An engine that says what nobody asked for is not kept in touch with
        for a while.

        Raises:
            EngineUnreachableError: nothing of an answer arrived.
            EngineBrokeError: what arrived was no HTTP answer.
        """
        origin = parse_origin(endpoint.url)
        head = self._heads.write(origin, endpoint, request)
        pool = self._pools.get(origin.key)
        kept = pool.take() if pool is not None else None
        if kept is not None:
            time = asyncio.get_running_loop().time
            had_it_at = time() + self._connect_timeout_s
            try:
                exchange = await kept.exchange(method=request.method, head=head, body=request.body)
                if time() > had_it_at or not self._is_another(kept, exchange):
                    return exchange
                exchange.close()
                kept.abort()
            except EngineUnreachableError:
                if time() > had_it_at:
                    raise
        fresh = await self._connect(origin)
        try:
            return await fresh.exchange(method=request.method, head=head, body=request.body)
        except EngineUnreachableError as error:
            if origin.tls or pool is not None:
                raise
            # Nothing there has ever answered us: most servers close at once when they expected TLS.
            raise EngineUnreachableError(f"{error}; if it speaks TLS, its url must begin with https://") from error

    async def close(self) -> None:
        """Close every kept connection; those in use close with their exchanges."""
        self._closed = True
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()

    async def _connect(self, origin: Origin) -> Connection:
        if self._closed:
            raise EngineUnreachableError("the connection pool is closed")
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                return await (self._connect_securely(origin) if origin.tls else self._connect_plainly(origin))
        except OSError as error:
            raise EngineUnreachableError(self._describe(origin, error)) from error

    async def _connect_plainly(self, origin: Origin) -> Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(partial(self._connection, origin), origin.host, origin.port)
        return connection

    async def _connect_securely(self, origin: Origin) -> Connection:
        connection = self._connection(origin)
        secured = TlsSocket(connection, context=await self._tls_context(), host=origin.host)
        protocol = TlsProtocol(secured, connection, buffer=self._secure_buffer)
        await asyncio.get_running_loop().create_connection(lambda: protocol, origin.host, origin.port)
        await secured.shake_hands()
        return connection

    def _connection(self, origin: Origin) -> Connection:
        return Connection(self, origin, loop=asyncio.get_running_loop(), buffer=self._buffer)

    async def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = await asyncio.to_thread(default_trust)  # reads hundreds of certificates
        return self._tls

    def _describe(self, origin: Origin, error: OSError) -> str:
        if isinstance(error, TimeoutError):
            how = " over TLS" if origin.tls else ""
            return f"connecting to {origin}{how} timed out after {self._connect_timeout_s:g} s"
        if isinstance(error, ConnectionRefusedError):
            return f"connection refused by {origin}"
        if isinstance(error, socket.gaierror):
            return f"no address found for {origin.host}: {error.strerror or error}"
        if isinstance(error, ssl.SSLError):
            return f"TLS with {origin} failed: {tls_fault(error)}"
        return f"cannot connect to {origin}: {error.strerror or error}"

    def has_unread(self, descriptor: int) -> bool:
        """See Owner."""
        look = self._look
        look.register(descriptor, _READABLE)
        try:
            return bool(look.poll(0))
        finally:
            look.unregister(descriptor)

    def released(self, connection: Connection, *, reusable: bool) -> None:
        """See Owner."""
        if not reusable or self._closed:
            connection.abort()
            return
        self._pool(connection.origin.key).give_back(connection)

    def lost(self, connection: Connection) -> None:
        """See Owner."""
        pool = self._pools.get(connection.origin.key)
        if pool is not None:
            pool.forget(connection)

    def unasked(self, connection: Connection) -> None:
        """See Owner."""
        origin = connection.origin
        if not self._closed and self._pool(origin.key).distrust():
            _LOGGER.warning("engine_spoke_unasked", extra={"engine": str(origin), "kept_again_after_s": DISTRUST_S})

    def _is_another(self, kept: Connection, exchange: HttpExchange) -> bool:
        """Say whether what came on a kept connection answers something else than what was asked.

        An engine that says that no request came answers none, and nobody grants one that has not gone out whole.
        """
        if exchange.status == _TIMED_OUT:
            return True
        if kept.written or exchange.status >= 300:
            return False
        self.unasked(kept)
        return True

    def _pool(self, key: PoolKey) -> Pool:
        pool = self._pools.get(key)
        if pool is None:
            pool = self._pools[key] = Pool(idle_s=self._idle_s)
        return pool
