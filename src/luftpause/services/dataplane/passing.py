"""An engine's answer on its way to the client: looked at and listened to in passing, and said in the client's words.

It knows what an answer says, not who sends it on. How a turn ended: `endings`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from luftpause.core.dialects.answer_text import AnswerText
from luftpause.core.dialects.chat_said import text_in_chat_answer
from luftpause.core.dialects.dialect import UnfitAnswerError, WayBack
from luftpause.core.dialects.files import file_in_chat, unreadable
from luftpause.core.dialects.observe import BodyObserver, Observer, StreamObserver
from luftpause.core.dialects.said import Said
from luftpause.core.dialects.ways_back import PiecedTranslation, way_back
from luftpause.core.model.ids import TurnId
from luftpause.core.model.replicas import ON_ONE_MACHINE, Placement
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import TurnFailed, TurnFinished
from luftpause.ports.engines import EngineBrokeError, Exchange, Sink
from luftpause.services.dataplane.endings import NOT_MEASURED, Measured, asking, ending_of, is_odd_refusal, marked
from luftpause.services.dataplane.forwarding import CHAT, Asked, Forwarded, is_event_stream
from luftpause.services.dataplane.growth import NEVER, Growth
from luftpause.services.dataplane.open_turns import OpenTurns

WHOLE_ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
"""Longest answer that is kept to be said in other words; nothing honest is longer."""
LINGER_S: Final = 1.0
"""An engine that has said that its answer is over has this long to end it, too."""
REFUSAL_S: Final = 5.0
"""So long an engine may take to say why it refuses."""

_CODING_SHOWN_MAX: Final = 40
_BAD_REQUEST: Final = (400, 415, 422)
_TELLING: Final = (b"content-length", b"transfer-encoding")

_LOGGER: Final = logging.getLogger("luftpause.dataplane")


class PassingAnswer:
    """One answer.

    Attributes:
        exchange: the answer under way.
        stream: whether it comes as server-sent events.
        back: how it becomes the client's; None where it is that as it comes.
        observer: what looks at it; None where it is a failure, which nothing looks at.
        unread: what its engine could not read, for people, where that may be why it refused; empty else.
        growth: who is told how long it becomes; None where nobody asks.
        size: bytes that its engine has streamed of it, as far as somebody asks.
        spoken_of: when it is that long its growth is to be told.
    """

    __slots__ = (
        "_approve_tools",
        "_dialect",
        "_has_length",
        "_listener",
        "_reply_cap",
        "_said",
        "_timer",
        "back",
        "exchange",
        "growth",
        "observer",
        "placement",
        "size",
        "spoken_of",
        "stream",
        "unread",
    )

    def __init__(self, asked: Asked, forwarded: Forwarded, placement: Placement, exchange: Exchange) -> None:
        self.exchange = exchange
        self.placement = placement
        self.stream = is_event_stream(exchange.headers)
        self.back: WayBack | None = forwarded.back
        if self.stream != asked.stream and exchange.status < 300:
            self.back = way_back(forwarded.back, forwarded.assembles, wants_stream=asked.stream, is_stream=self.stream)
        self.observer = _observer(asked, self.back, exchange, stream=self.stream)
        self.unread = _unread(asked, placement, exchange)
        self.growth: Growth | None = None
        self.size, self.spoken_of = 0, NEVER
        self._reply_cap = forwarded.reply_cap
        self._timer: asyncio.TimerHandle | None = None
        self._has_length = any(name == b"content-length" for name, _ in exchange.headers)
        self._dialect = asked.dialect.name
        self._said: Said | None = asked.said
        self._approve_tools = asked.approve_tools
        self._listener: AnswerText | None = None
        if self._said is not None and self.observer is not None:
            text_in = asked.dialect.text_in if self.back is None else text_in_chat_answer
            self._listener = AnswerText(text_in, stream=self.stream)

    @property
    def begins(self) -> bool:
        """Whether nothing of it was fed that anybody looks at."""
        return self.observer is not None and not self.observer.first_token_seen

    @property
    def _tells_length(self) -> bool:
        """Whether its client is told its length."""
        return self.back is None and self._has_length

    @property
    def takes_signs(self) -> bool:
        """Whether signs of life may stand before its first piece: it is a stream, of a length that nobody was told."""
        return self.stream and self.observer is not None and not self._tells_length

    @property
    def done(self) -> bool:
        """Whether it said that it is over, or that it failed; or its client was told that it is none."""
        return self.observer is not None and (self.observer.done or self._is_none)

    @property
    def _is_none(self) -> bool:
        """Whether its client was told that it is none, although its engine may go on."""
        return self.back is not None and bool(self.back.failure)

    def fit(self, *, promised: bool) -> None:
        """Refuse it where it must be reworded and cannot be read; become a stream where one was `promised`.

        Raises:
            UnfitAnswerError: it is compressed, which its engine was asked not to do, or cannot become a stream.
        """
        coding = "" if self.back is None or self.observer is None else _coding(self.exchange)
        if coding:
            raise UnfitAnswerError(f"its answer is compressed ({coding}), although it was asked not to do that")
        if not promised or self.stream or self.observer is None or self.back is not None:
            return
        if self._dialect != CHAT:
            raise UnfitAnswerError("its answer is no event stream")
        self.back = PiecedTranslation(None)

    @property
    def may_be_reworded(self) -> bool:
        """Whether a refusal has to be read before it is passed on."""
        return self.back is not None or bool(self.unread) or is_odd_refusal(self.exchange, self._dialect)

    @property
    def broke_off(self) -> bool:
        """Whether it ended as it came, and neither it said that it is over nor HTTP, as far as it can be looked at."""
        if self.back is not None or self.observer is None or not self.observer.broke_off():
            return False
        return (self.begins or not _tells_its_end(self.exchange)) and not _coding(self.exchange)

    def check_whole(self) -> None:
        """Refuse an answer that was passed on to its end and was not whole.

        Raises:
            EngineBrokeError: it broke off.
        """
        if self.broke_off:
            raise EngineBrokeError("its answer broke off: it told neither a finish reason nor that it is over")

    def linger(self) -> None:
        """Give the engine a while to end, once it is clear how the turn did; then it is not waited for any longer.

        One that does not know that its answer is none would go on to its end: it gets no time.
        """
        if self._timer is not None or self._tells_length:
            return
        if self.observer is None:
            did, after_s = "refused", REFUSAL_S
        elif self.observer.done:
            did, after_s = "told of an error" if self._failure() else "said that its answer is over", LINGER_S
        else:
            did, after_s = "sent what cannot be said in its client's words", 0.0
        why = f"it {did} and kept the answer open for {after_s:g} s more"
        self._timer = asyncio.get_running_loop().call_later(after_s, self._give_up, why)

    def feed(self, data: bytes) -> bytes:
        """Take the next piece, cut anywhere, and return what the client is to get for it."""
        if self.observer is not None:
            self.observer.feed(data)
            if self._listener is not None:
                self._listener.feed(data)
        return data if self.back is None else self.back.feed(data)

    async def collect(self, begins: Callable[[Exchange], None]) -> None:
        """Take all of it, to be said at its end. `begins` is called at its first byte.

        Raises:
            EngineBrokeError: it ended early, is too long, or told of an error instead of finishing.
        """
        while data := await self.exchange.read():
            self.size += len(data)
            if self.size > WHOLE_ANSWER_BYTES_MAX:
                raise EngineBrokeError(f"its answer exceeds {WHOLE_ANSWER_BYTES_MAX:,} bytes")
            if self.begins:
                begins(self.exchange)
            self.feed(data)
            if self.growth is not None and self.size >= self.spoken_of:
                self.spoken_of = self.growth.grew(self.size)
            if self.done:
                self.linger()
        failure = self._failure()
        if failure:
            raise EngineBrokeError(failure)

    def end(self) -> bytes:
        """Return what is to follow the last piece: see `WayBack.end`."""
        if self._timer is not None:
            self._timer.cancel()
        return b"" if self.back is None else self.back.end()

    def report(self, turn: TurnId, restore_s: float | None = None) -> TurnFinished | TurnFailed:
        """Return how its turn ended. Where it is said in other words, its calls are known by the ids given there.

        `restore_s`: how long its run's KV took to be read back before, seconds; None where it was not.
        """
        measured = NOT_MEASURED
        if self.growth is not None or self._reply_cap:
            measured = Measured(0 if self.growth is None else self.size, self._reply_cap)
        report = ending_of(turn, self.placement, self.exchange, self.observer, self.back, measured)
        if restore_s is not None and isinstance(report, TurnFinished):
            report = replace(report, restore_s=restore_s)
        return asking(marked(report, self._said, self._listener), self._approve_tools)

    def _failure(self) -> str:
        """Return the error that it told of instead of finishing, empty without one."""
        if self.observer is None:
            return ""
        seen = self.observer.observed()
        return "" if seen.finish else seen.error

    def _give_up(self, why: str) -> None:
        """End an answer that is over and goes on. One that is at its end by now, whichever way, is left alone."""
        if self.exchange.finish():
            _LOGGER.warning("engine_given_up", extra={"replica": self.placement.replica, "why": why})


def measure(answer: PassingAnswer, turns: OpenTurns, offer: TurnOffer) -> None:
    """Have an answer measured, where its turn is charged for its length and that can be seen before its end."""
    charge = answer.placement.charge
    if charge is not None and answer.stream and answer.observer is not None:
        answer.growth = Growth(turns, offer, charge)
        answer.spoken_of = answer.growth.spoken_of


class Measuring(Sink):
    """Hands an answer on to a sink, and adds up how long it becomes."""

    __slots__ = ("_answer", "_sink")

    def __init__(self, answer: PassingAnswer, sink: Sink) -> None:
        self._answer = answer
        self._sink = sink

    def take_piece(self, data: bytes, is_last: bool) -> bool:
        """See `Sink`."""
        answer = self._answer
        answer.size += len(data)  # before the piece that may end the turn
        has_room = self._sink.take_piece(data, is_last)
        if answer.growth is not None and answer.size >= answer.spoken_of:
            answer.spoken_of = answer.growth.grew(answer.size)
        return has_room

    def room(self) -> Awaitable[None]:
        """See `Sink`."""
        return self._sink.room()


async def read_up_to(exchange: Exchange, limit: int) -> bytes:
    """Return an answer's body, or as much of it as the limit allows, bytes."""
    pieces: list[bytes] = []
    while sum(map(len, pieces)) < limit and (data := await exchange.read()):
        pieces.append(data)
    return b"".join(pieces)[:limit]


def _coding(exchange: Exchange) -> str:
    """Return how an answer is compressed, for people; empty where it is not."""
    for name, value in exchange.headers:
        if name == b"content-encoding" and value.lower() != b"identity":
            return value.decode("ascii", "backslashreplace")[:_CODING_SHOWN_MAX]
    return ""


def _tells_its_end(exchange: Exchange) -> bool:
    """Say whether an answer has a length or comes in chunks; another ends with its connection, and that may die."""
    return any(name in _TELLING for name, _ in exchange.headers)


def _unread(asked: Asked, placement: Placement, exchange: Exchange) -> str:
    """Return what an engine could not read, for people, where that may be why it refused; empty else."""
    if asked.dialect.name != CHAT or exchange.status not in _BAD_REQUEST or placement.engine not in ON_ONE_MACHINE:
        return ""
    file = file_in_chat(asked.body)
    return f" ({unreadable(file)})" if file else ""


def _observer(asked: Asked, back: WayBack | None, exchange: Exchange, *, stream: bool) -> Observer | None:
    """Return what looks at an engine's answer; nothing looks at one that is a failure."""
    if not 200 <= exchange.status < 300:
        return None
    if back is not None:
        return StreamObserver() if stream else BodyObserver()
    return asked.dialect.observer(stream=stream)
