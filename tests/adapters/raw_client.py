"""An HTTP client of raw bytes: it can send what no honest client sends and sees what really came back."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit


@dataclass(slots=True)
class Reply:
    """An answer. `broken`: the connection closed before its end."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    broken: bool = False

    def header(self, name: bytes) -> bytes | None:
        values = [value for key, value in self.headers if key.lower() == name]
        assert len(values) < 2, f"{name!r} came {len(values)} times"
        return values[0] if values else None


class RawClient:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def head(self) -> Reply:
        """Return status and headers; the body is still to be read."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        line, *rest = head[:-4].split(b"\r\n")
        headers = [(name.lower(), value.strip()) for name, _, value in (field.partition(b":") for field in rest)]
        return Reply(int(line.split(b" ")[1]), headers, b"")

    async def chunk(self) -> bytes:
        """Return the next chunk of a chunked body, b"" at its end."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        data = await self.reader.readexactly(size + 2)
        return data[:-2]

    async def rest(self) -> tuple[bytes, bool]:
        """Return what comes yet of a chunked body, and whether it is cut off."""
        chunks: list[bytes] = []
        try:
            while chunk := await self.chunk():
                chunks.append(chunk)
        except asyncio.IncompleteReadError:
            return b"".join(chunks), True
        return b"".join(chunks), False

    async def reply(self, *, to_head: bool = False) -> Reply:
        """Return the next answer, whole or as far as it came."""
        reply = await self.head()
        if to_head or reply.status in (204, 304):
            return reply
        chunks: list[bytes] = []
        try:
            length = reply.header(b"content-length")
            if length is not None:
                chunks.append(await self.reader.readexactly(int(length)))
            else:
                assert reply.header(b"transfer-encoding") == b"chunked"
                while chunk := await self.chunk():
                    chunks.append(chunk)
        except asyncio.IncompleteReadError as error:
            chunks.append(b"" if reply.header(b"content-length") is None else error.partial)
            reply.broken = True
        reply.body = b"".join(chunks)
        return reply

    async def ended(self) -> bool:
        """Return whether the server closes the connection, having sent nothing more."""
        with contextlib.suppress(ConnectionError):
            return await self.reader.read(1) == b""
        return True

    def read_no_more(self) -> None:
        """Leave what comes in the sockets' buffers."""
        cast("asyncio.Transport", self.writer.transport).pause_reading()

    def read_again(self) -> None:
        cast("asyncio.Transport", self.writer.transport).resume_reading()

    def leave(self) -> None:
        self.writer.transport.abort()


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[RawClient]:
    """Connect to a base URL."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=64 * 1024 * 1024)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def request(method: bytes, path: bytes, *headers: bytes, body: bytes | None = None) -> bytes:
    """Return a request's bytes."""
    length = [] if body is None else [b"content-length: %d" % len(body)]
    lines = [b"%b %b HTTP/1.1" % (method, path), b"host: 127.0.0.1", *headers, *length, b"", body or b""]
    return b"\r\n".join(lines)


async def fetch(url: str, method: bytes, path: bytes, *headers: bytes, body: bytes | None = None) -> Reply:
    """Send one request on a connection of its own."""
    async with connected(url) as client:
        client.send(request(method, path, *headers, body=body))
        return await client.reply(to_head=method == b"HEAD")
