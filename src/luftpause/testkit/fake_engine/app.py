"""The fake engine's HTTP face, a plain ASGI app.

It answers `/v1/chat/completions`, `/v1/completions`, `/v1/embeddings`, `/v1/models`, `/classify`, `/tokenize`,
`/health`, `/metrics` and, where it was told a folder for them, `/slots`. A client that goes away ends its request at
once. Decides neither what is answered nor how fast.
"""

import asyncio
import contextlib
import itertools
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

from luftpause.testkit.engine_model.engine import Outcome
from luftpause.testkit.engine_model.sequence import Request
from luftpause.testkit.fake_engine import wire
from luftpause.testkit.fake_engine.chains import Piece, chain_of
from luftpause.testkit.fake_engine.classify import Classify, classification
from luftpause.testkit.fake_engine.conversations import Chat, Completion, extended, pieces, text_pieces
from luftpause.testkit.fake_engine.embeddings import Embeddings, embedding
from luftpause.testkit.fake_engine.engine import Engine, PromptTooLongError, Seat
from luftpause.testkit.fake_engine.exchange import ClientGoneError, Exchange, RefusedError
from luftpause.testkit.fake_engine.markers import read_orders
from luftpause.testkit.fake_engine.metrics import CONTENT_TYPE, render_metrics
from luftpause.testkit.fake_engine.replies import Reply, UnknownToolError, plan_reply, reply_id
from luftpause.testkit.fake_engine.settings import MetricsStyle, Settings
from luftpause.testkit.fake_engine.slots import FileNamed, Slots
from luftpause.testkit.fake_engine.tokenize import Tokenize, tokenized

REMEMBERED_FAILURES_MAX = 10_000
_SLOT_PATH = re.compile(r"/slots/([0-9]{1,4})")
RESERVED_TOKENS_MAX = 4096
"""The longest reply that an engine expects, whatever its client allows."""

_Body = TypeVar("_Body", Chat, Completion, Classify, Embeddings, Tokenize)


class FakeEngineApp:
    """The app. `engine.run()` must be running while it serves."""

    def __init__(self, settings: Settings) -> None:
        self.engine = Engine(settings.figures, settings.ttft_s)
        self._slots = Slots(settings, self.engine)
        self._settings = settings
        self._started_at = time.monotonic()
        self._started_utc = int(time.time())
        self._numbers = itertools.count(1)
        self._failed: OrderedDict[str, int] = OrderedDict()
        self._routes: dict[str, tuple[str, Callable[[Exchange], Awaitable[None]]]] = {
            "/v1/chat/completions": ("POST", self._chat),
            "/v1/completions": ("POST", self._completion),
            "/v1/embeddings": ("POST", self._embed),
            "/classify": ("POST", self._classify),
            "/tokenize": ("POST", self._tokenize),
            "/v1/models": ("GET", self._models),
            "/slots": ("GET", self._list_slots),
            "/health": ("GET", self._health),
            "/metrics": ("GET", self._metrics),
        }

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        """Answer one request."""
        assert scope["type"] == "http"
        exchange = Exchange(scope, receive, send)
        try:
            if time.monotonic() - self._started_at < self._settings.load_s:
                raise RefusedError(503, "Loading model", "unavailable_error")
            slot = _SLOT_PATH.fullmatch(scope["path"])
            if slot is not None and scope["method"] == "POST":
                await self._slot(exchange, int(slot[1]), scope["query_string"])
                return
            method, answer = self._routes.get(scope["path"], ("", None))
            if answer is None:
                raise RefusedError(404, f"no such path: {scope['path']}")
            if scope["method"] not in (method, "HEAD" if method == "GET" else method):
                raise RefusedError(405, f"{scope['path']} takes {method} only")
            await answer(exchange)
        except RefusedError as refused:
            await exchange.answer(refused.status, refused.body)
        except ClientGoneError:
            return

    async def _chat(self, exchange: Exchange) -> None:
        chat = self._checked(await exchange.parsed(Chat))
        if not chat.messages:
            raise RefusedError(400, "messages must not be empty")
        await self._generate(exchange, chat, pieces(chat), wire.ChatEnvelope)

    async def _completion(self, exchange: Exchange) -> None:
        completion = self._checked(await exchange.parsed(Completion))
        prompt = text_pieces(completion.model, completion.text)
        await self._generate(exchange, completion.as_chat(), prompt, wire.TextEnvelope)

    async def _generate(
        self, exchange: Exchange, chat: Chat, prompt: Sequence[Piece], envelope_kind: type[wire.Envelope]
    ) -> None:
        conversation = prompt[-1].prefix
        self._fail_if_told(chat, conversation)
        number = next(self._numbers)
        try:
            reply = plan_reply(chat, self._settings, conversation, number)
        except UnknownToolError as unknown:
            raise RefusedError(400, str(unknown)) from unknown
        name = envelope_kind.id_prefix + reply_id(self._settings.seed, conversation, number)
        envelope = envelope_kind(id=name, model=chat.model, created=int(time.time()))
        async with self._seated(exchange, self._request(chat, prompt, reply, number)) as seat:
            if chat.stream:
                options = chat.stream_options
                with_usage = reply.counted and options is not None and options.include_usage is True
                await self._stream(exchange, seat, envelope, reply, with_usage=with_usage)
            else:
                await _complete(exchange, seat, envelope, reply)
            *shared, (own, tokens) = seat.request.prompt
            self._slots.used(chat.id_slot, (*shared, (own, tokens + len(reply.deltas))))

    def _request(self, chat: Chat, prompt: Sequence[Piece], reply: Reply, number: int) -> Request:
        """Return the request as the engine model sees it."""
        figures, tokens = self._settings.figures, len(reply.deltas)
        room = figures.kv_tokens - sum(piece.tokens for piece in prompt)
        name = extended(prompt[-1].prefix, reply.message()).prefix
        return Request(
            key=number,
            prompt=chain_of(prompt, name, figures.page_tokens),
            reply_tokens=tokens,
            reply_tokens_max=max(tokens, min(chat.token_cap or tokens, RESERVED_TOKENS_MAX, room)),
            priority=chat.priority or 0,
            dies_after=reply.dies_after,
            stalls_after=reply.stalls_after,
        )

    async def _stream(
        self, exchange: Exchange, seat: Seat, envelope: wire.Envelope, reply: Reply, *, with_usage: bool
    ) -> None:
        """Stream a reply token by token. Returning early cuts it."""
        await exchange.begin(200, "text/event-stream; charset=utf-8")
        sent = 0
        async for progress in seat:
            is_early = sent and progress.made - sent < self._settings.stream_interval
            if is_early and progress.outcome is not Outcome.DONE:
                continue
            opening = b"" if sent else envelope.opening()
            await exchange.write(opening + envelope.tokens(reply.deltas[sent : progress.made]))
            sent = progress.made
            if progress.outcome is Outcome.DONE:
                closing = envelope.finish(reply.finish_reason)
                if with_usage:
                    closing += envelope.usage(wire.usage(seat.request.prompt_tokens, sent, progress.cached_tokens))
                await exchange.write(closing + wire.DONE, last=True)

    async def _classify(self, exchange: Exchange) -> None:
        request = self._checked(await exchange.parsed(Classify))
        labels, seed = self._settings.labels, self._settings.seed
        await self._read(
            exchange,
            request,
            lambda: [classification(index, text, labels, seed) for index, text in enumerate(request.texts)],
        )

    async def _embed(self, exchange: Exchange) -> None:
        request = self._checked(await exchange.parsed(Embeddings))
        await self._read(
            exchange,
            request,
            lambda: [embedding(request, index, self._settings.seed) for index in range(len(request.texts))],
        )

    async def _read(
        self, exchange: Exchange, request: Classify | Embeddings, data: Callable[[], list[dict[str, object]]]
    ) -> None:
        """Answer with `data` once the engine has read all texts, in one pass."""
        prompt = text_pieces(request.model, "\n".join(request.texts))
        chain = chain_of(prompt, f"{prompt[-1].prefix} read", self._settings.figures.page_tokens)
        read = Request(key=next(self._numbers), prompt=chain, reply_tokens=1, reply_tokens_max=1)
        async with self._seated(exchange, read) as seat:
            async for progress in seat:
                if progress.outcome is Outcome.DONE:
                    counted = wire.usage(read.prompt_tokens, 0, progress.cached_tokens)
                    body = {"object": "list", "model": request.model, "data": data(), "usage": counted}
                    await exchange.answer(200, wire.encoded(body))

    async def _tokenize(self, exchange: Exchange) -> None:
        request = self._checked(await exchange.parsed(Tokenize))
        if request.prompt is None and not request.messages:
            raise RefusedError(400, "give a prompt or messages")
        await exchange.answer(200, wire.encoded(tokenized(request.pieces(), self._settings.figures.kv_tokens)))

    async def _list_slots(self, exchange: Exchange) -> None:
        await exchange.answer(200, wire.encoded(self._slots.listing()))

    async def _slot(self, exchange: Exchange, slot: int, query: bytes) -> None:
        if slot >= self._settings.figures.max_running:
            raise RefusedError(400, f"there is no slot {slot}")
        match query:
            case b"action=save":
                done = await self._slots.save(slot, (await exchange.parsed(FileNamed)).filename)
            case b"action=restore":
                done = await self._slots.restore(slot, (await exchange.parsed(FileNamed)).filename)
            case b"action=erase":
                done = self._slots.erase(slot)
            case _:
                raise RefusedError(400, "Invalid action")
        await exchange.answer(200, wire.encoded(done))

    async def _models(self, exchange: Exchange) -> None:
        owner = self._settings.metrics_style.value.replace(".", "")
        models = [
            {"id": model, "object": "model", "created": self._started_utc, "owned_by": owner}
            for model in self._settings.models
        ]
        await exchange.answer(200, wire.encoded({"object": "list", "data": models}))

    async def _health(self, exchange: Exchange) -> None:
        await exchange.answer(200, wire.encoded({"status": "ok"}))

    async def _metrics(self, exchange: Exchange) -> None:
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

    @contextlib.asynccontextmanager
    async def _seated(self, exchange: Exchange, request: Request) -> AsyncIterator[Seat]:
        """Have a seat while the client stays; give it up at once when the client leaves.

        Raises:
            RefusedError: the request could never run here.
        """
        try:
            seat = self.engine.enter(request)
        except PromptTooLongError as too_long:
            tokens = self._settings.figures.kv_tokens
            what = f"the request exceeds the {tokens} tokens of memory"
            raise RefusedError(400, what, "context_length_exceeded") from too_long

        async def leave_with_the_client() -> None:
            await exchange.gone()
            self.engine.leave(seat)

        watch = asyncio.create_task(leave_with_the_client(), name="watch-client")
        try:
            yield seat
        finally:
            self.engine.leave(seat)
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)


async def _complete(exchange: Exchange, seat: Seat, envelope: wire.Envelope, reply: Reply) -> None:
    """Send a whole reply when it is made; one that dies sends half of it."""
    async for progress in seat:
        if progress.outcome not in (Outcome.DONE, Outcome.DIED):
            continue
        counted = wire.usage(seat.request.prompt_tokens, progress.made, progress.cached_tokens)
        body = envelope.whole(reply, counted if reply.counted else None)
        if progress.outcome is Outcome.DONE:
            await exchange.answer(200, body)
        else:
            await exchange.begin(200, "application/json", len(body))
            await exchange.write(body[: len(body) // 2])
