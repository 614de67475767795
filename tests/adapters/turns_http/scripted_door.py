"""An LLM door that answers each request by a script of raw bytes, and remembers what it was asked."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from luftpause.adapters.engine_http.engines import HttpEngines
from luftpause.adapters.turns_http.client import HttpTurns
from luftpause.adapters.turns_http.retry import Patience
from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, PrincipalId
from luftpause.core.model.replicas import Endpoint

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]

ZOE = PrincipalId("zoe")


@dataclass
class Asked:
    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, object]:
        decoded: dict[str, object] = json.loads(self.body)
        return decoded


@dataclass
class Door:
    answers: list[Answer]
    asked: list[Asked] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    visits: set[asyncio.Task[None]] = field(default_factory=set)
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    def visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.visits.add(asyncio.ensure_future(self.serve(reader, writer)))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await _head(reader):
                line, headers = head
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                self.asked.append(Asked(line, headers, body))
                self.reached.set()
                await self.answers.pop(0)(writer)
                if writer.is_closing():
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.left.set()
            writer.close()


async def _head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]] | None:
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    line, *rest = raw.decode("latin-1").strip().split("\r\n")
    return line, {name.lower(): value.strip() for name, _, value in (entry.partition(":") for entry in rest)}


@asynccontextmanager
async def door(
    *answers: Answer, token: str = "", patience: Patience | None = None
) -> AsyncIterator[tuple[Door, HttpTurns]]:
    scripted = Door(list(answers))
    server = await asyncio.start_server(scripted.visit, "127.0.0.1", 0)
    engines = HttpEngines()
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    quick = patience or Patience(backoff_s=0.0)
    try:
        tokens = {ANONYMOUS_PRINCIPAL: token, ZOE: f"{token}-of-zoe"} if token else {}
        yield scripted, HttpTurns(engines, Endpoint(url=url), tokens, patience=quick)
    finally:
        await engines.close()
        server.close()
        for visit in scripted.visits:
            visit.cancel()
        await asyncio.gather(*scripted.visits, return_exceptions=True)


def status(code: int, message: str = "", **headers: str) -> Answer:
    body = json.dumps({"error": {"message": message}}).encode()
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {code} X\r\ncontent-length: {len(body)}\r\n{more}\r\n".encode() + body)
        await writer.drain()

    return answer


def stream(*pieces: bytes, cut: bool = False, header: str = "", kind: str = "text/event-stream") -> Answer:
    """A streamed answer of these pieces, with one more header; `cut` drops the connection after them."""
    more = f"{header}\r\n" if header else ""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{more}transfer-encoding: chunked\r\n\r\n"

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head.encode())
        for piece in pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        if cut:
            writer.close()
        else:
            writer.write(b"0\r\n\r\n")
            await writer.drain()

    return answer


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()


async def silence(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    await writer.drain()


def events(*datas: object) -> bytes:
    """Chunks as server-sent events, [DONE] at the end."""
    written = [json.dumps(data) for data in datas]
    return b"".join(f"data: {data}\n\n".encode() for data in [*written, "[DONE]"])


def delta(finish: str | None = None, **fields: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call_piece(**fields: object) -> dict[str, object]:
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    return delta(tool_calls=[{**fields, "function": function}])


SAYS_HELLO: Sequence[object] = (
    delta(role="assistant", content=""),
    delta(content="Hel"),
    delta(content="lo “you”"),
    delta(finish="stop"),
    {
        "choices": [],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
    },
)
