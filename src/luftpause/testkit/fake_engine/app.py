"""The fake engine's HTTP face, a plain ASGI app.

It answers `/v1/chat/completions`, `/v1/models`, `/classify`, `/health` and `/metrics`. A client that goes away ends its
request at once. Decides neither what is answered nor how fast.
"""

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import msgspec
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, HTTPScope, Scope

from luftpause.testkit.fake_engine import wire
from luftpause.testkit.fake_engine.classify import Classify, classification
from luftpause.testkit.fake_engine.conversations import Chat, extended, pieces, text_pieces
from luftpause.testkit.fake_engine.engine import Engine, PromptTooLongError, Seat
from luftpause.testkit.fake_engine.markers import read_orders
from luftpause.testkit.fake_engine.metrics import CONTENT_TYPE, render_metrics
from luftpause.testkit.fake_engine.replies import Reply, UnknownToolError, plan_reply, reply_id
from luftpause.testkit.fake_engine.settings import BODY_BYTES_MAX, MetricsStyle, Settings

REMEMBERED_FAILURES_MAX = 10_000
_Body = TypeVar("_Body", Chat, Classify)


class RefusedError(Exception):
    """A request that gets an error answer: `status` and an error body."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = wire.error(status, message, code)


class _ClientGoneError(Exception):
    """The client left before its request was complete."""


class FakeEngineApp:
    """The app. `engine.run()` must be running while it serves."""

    def __init__(self, settings: Settings) -> None:
        self.engine = Engine(settings.figures)
        self._settings = settings
        self._started_at = time.monotonic()
        self._started_utc = int(time.time())
        self._number = 0
        self._failed: OrderedDict[str, int] = OrderedDict()
        self._routes: dict[str, tuple[str, Callable[[_Exchange], Awaitable[None]]]] = {
            "/v1/chat/completions": ("POST", self._chat),
            "/classify": ("POST", self._classify),
            "/v1/models": ("GET", self._models),
            "/health": ("GET", self._health),
            "/metrics": ("GET", self._metrics),
        }

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        """Answer one request."""
        assert scope["type"] == "http"
        exchange = _Exchange(scope, receive, send)
        try:
            if time.monotonic() - self._started_at < self._settings.load_s:
                raise RefusedError(503, "Loading model", "unavailable_error")
            method, answer = self._routes.get(scope["path"], ("", None))
            if answer is None:
                raise RefusedError(404, f"no such path: {scope['path']}")
            if scope["method"] not in (method, "HEAD" if method == "GET" else method):
                raise RefusedError(405, f"{scope['path']} takes {method} only")
            await answer(exchange)
        except RefusedError as refused:
            await exchange.answer(refused.status, refused.body)
        except _ClientGoneError:
            return

    async def _chat(self, exchange: "_Exchange") -> None:
        chat = self._checked(_parsed(await exchange.body(), Chat))
        if not chat.messages:
            raise RefusedError(400, "messages must not be empty")
        prompt = pieces(chat)
        conversation = prompt[-1].prefix
        self._fail_if_told(chat, conversation)
        self._number += 1
        number = self._number
        try:
            reply = plan_reply(chat, self._settings, conversation, number)
            seat = self.engine.enter(
                prompt,
                reply_tokens=len(reply.deltas),
                reply_prefix=extended(conversation, reply.message()).prefix,
                stalls_after=reply.stalls_after,
            )
        except UnknownToolError as unknown:
            raise RefusedError(400, str(unknown)) from unknown
        except PromptTooLongError as too_long:
            raise self._too_long() from too_long
        envelope = wire.Envelope(
            id=reply_id(self._settings.seed, conversation, number), model=chat.model, created=int(time.time())
        )
        prompt_tokens = sum(piece.tokens for piece in prompt)
        async with self._seated(exchange, seat):
            if chat.stream:
                with_usage = chat.stream_options is not None and chat.stream_options.include_usage
                await _stream(exchange, seat, envelope, reply, prompt_tokens if with_usage else None)
            else:
                await _complete(exchange, seat, envelope, reply, prompt_tokens)

    async def _classify(self, exchange: "_Exchange") -> None:
        request = self._checked(_parsed(await exchange.body(), Classify))
        prompt = text_pieces(request.model, "\n".join(request.texts))
        try:
            seat = self.engine.enter(prompt, reply_tokens=1, reply_prefix=prompt[-1].prefix)
        except PromptTooLongError as too_long:
            raise self._too_long() from too_long
        async with self._seated(exchange, seat):
            async for progress in seat:
                counted = wire.usage(prompt[-1].tokens, 0, progress.cached_tokens)
                labels, seed = self._settings.labels, self._settings.seed
                data = [classification(index, text, labels, seed) for index, text in enumerate(request.texts)]
                body = {"object": "list", "model": request.model, "data": data, "usage": counted}
                await exchange.answer(200, wire.encoded(body))

    async def _models(self, exchange: "_Exchange") -> None:
        owner = self._settings.metrics_style.value.replace(".", "")
        models = [
            {"id": model, "object": "model", "created": self._started_utc, "owned_by": owner}
            for model in self._settings.models
        ]
        await exchange.answer(200, wire.encoded({"object": "list", "data": models}))

    async def _health(self, exchange: "_Exchange") -> None:
        await exchange.answer(200, wire.encoded({"status": "ok"}))

    async def _metrics(self, exchange: "_Exchange") -> None:
        style = self._settings.metrics_style
        if style is MetricsStyle.NONE:
            raise RefusedError(404, "this engine reports no metrics")
        page = render_metrics(style, self.engine.gauges(), self._settings.models[0])
        await exchange.answer(200, page.encode(), CONTENT_TYPE)

    def _checked(self, request: _Body) -> _Body:
        if request.model not in self._settings.models:
            raise RefusedError(404, f"The model {request.model!r} does not exist.", "model_not_found")
        return request

    def _fail_if_told(self, chat: Chat, conversation: str) -> None:
        orders = read_orders(chat.task)
        if orders.fail is None:
            return
        times = self._failed.get(conversation, 0)
        if orders.fail_times is not None and times >= orders.fail_times:
            return
        self._failed[conversation] = times + 1
        while len(self._failed) > REMEMBERED_FAILURES_MAX:
            self._failed.popitem(last=False)
        raise RefusedError(orders.fail, f"failing with {orders.fail}, as the message asks")

    def _too_long(self) -> RefusedError:
        tokens = self._settings.figures.kv_tokens
        return RefusedError(400, f"the request exceeds the {tokens} tokens of memory", "context_length_exceeded")

    @contextlib.asynccontextmanager
    async def _seated(self, exchange: "_Exchange", seat: Seat) -> AsyncIterator[None]:
        """Keep a seat while the client stays; give it up at once when the client leaves."""

        async def leave_with_the_client() -> None:
            await exchange.gone()
            self.engine.leave(seat)

        watch = asyncio.create_task(leave_with_the_client(), name="watch-client")
        try:
            yield
        finally:
            self.engine.leave(seat)
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)


class _Exchange:
    """One HTTP request and its answer."""

    def __init__(self, scope: HTTPScope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send

    async def body(self) -> bytes:
        """Read the whole body."""
        parts: list[bytes] = []
        length = 0
        more = True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                raise _ClientGoneError
            parts.append(message["body"])
            length += len(message["body"])
            if length > BODY_BYTES_MAX:
                raise RefusedError(413, f"the body exceeds {BODY_BYTES_MAX} bytes")
            more = message["more_body"]
        return b"".join(parts)

    async def gone(self) -> None:
        """Return when the client has left."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def answer(self, status: int, body: bytes, content_type: str = "application/json") -> None:
        """Send a whole answer."""
        await self.begin(status, content_type, len(body))
        await self.write(b"" if self._scope["method"] == "HEAD" else body, last=True)

    async def begin(self, status: int, content_type: str, length: int | None = None) -> None:
        """Send status and headers; without a length the body is chunked."""
        headers = [(b"content-type", content_type.encode())]
        if length is not None:
            headers.append((b"content-length", b"%d" % length))
        if status in (429, 503):
            headers.append((b"retry-after", b"1"))
        await self._send({"type": "http.response.start", "status": status, "headers": headers, "trailers": False})

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Send a part of the body."""
        await self._send({"type": "http.response.body", "body": data, "more_body": not last})


async def _stream(
    exchange: _Exchange, seat: Seat, envelope: wire.Envelope, reply: Reply, prompt_tokens: int | None
) -> None:
    """Stream a reply token by token; `prompt_tokens` is None where no usage is wanted. Returning early cuts it."""
    await exchange.begin(200, "text/event-stream; charset=utf-8")
    sent = 0
    async for progress in seat:
        if reply.dies_after is not None and progress.made > reply.dies_after:
            return
        opening = b"" if sent else wire.role_chunk(envelope)
        await exchange.write(opening + wire.delta_chunks(envelope, reply.deltas[sent : progress.made]))
        sent = progress.made
        if progress.done:
            closing = wire.finish_chunk(envelope, reply.finish_reason)
            if prompt_tokens is not None:
                closing += wire.usage_chunk(envelope, wire.usage(prompt_tokens, sent, progress.cached_tokens))
            await exchange.write(closing + wire.DONE, last=True)


async def _complete(exchange: _Exchange, seat: Seat, envelope: wire.Envelope, reply: Reply, prompt_tokens: int) -> None:
    """Send a whole reply when it is made; one that dies sends half of it."""
    async for progress in seat:
        body = wire.completion(envelope, reply, wire.usage(prompt_tokens, progress.made, progress.cached_tokens))
        if reply.dies_after is not None and progress.made > reply.dies_after:
            await exchange.begin(200, "application/json", len(body))
            await exchange.write(body[: len(body) // 2])
            return
        if progress.done:
            await exchange.answer(200, body)


def _parsed(body: bytes, kind: type[_Body]) -> _Body:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as invalid:
        raise RefusedError(400, f"the body is no valid request: {invalid}") from invalid
