"""An engine's answer on its way to the client: looked at and listened to in passing, and said in the client's words.

It knows what an answer says, not who sends it on. How a turn ended: `endings`.
"""

from dataclasses import replace

from luftpause.core.dialects.answer_text import AnswerText
from luftpause.core.dialects.chat_said import text_in_chat_answer
from luftpause.core.dialects.dialect import WayBack
from luftpause.core.dialects.observe import BodyObserver, Observer, StreamObserver
from luftpause.core.dialects.said import Said
from luftpause.core.model.ids import TurnId
from luftpause.core.model.replicas import Placement
from luftpause.core.scheduling.events import TurnFailed, TurnFinished
from luftpause.ports.engines import Exchange
from luftpause.services.dataplane.endings import ending_of, marked
from luftpause.services.dataplane.forwarding import Asked, Forwarded, is_event_stream


class PassingAnswer:
    """One answer.

    Attributes:
        exchange: the answer under way.
        stream: whether it comes as server-sent events.
        back: how it becomes the client's; None where it is that as it comes.
        observer: what looks at it; None where it is a failure, which nothing looks at.
    """

    __slots__ = ("_listener", "_said", "back", "exchange", "observer", "placement", "stream")

    def __init__(self, asked: Asked, forwarded: Forwarded, placement: Placement, exchange: Exchange) -> None:
        self.exchange = exchange
        self.placement = placement
        self.back: WayBack | None = forwarded.back
        self.stream = is_event_stream(exchange.headers)
        self.observer = _observer(asked, forwarded, exchange, stream=self.stream)
        self._said: Said | None = asked.said
        self._listener: AnswerText | None = None
        if self._said is not None and self.observer is not None:
            text_in = asked.dialect.text_in if self.back is None else text_in_chat_answer
            self._listener = AnswerText(text_in, stream=self.stream)

    @property
    def begins(self) -> bool:
        """Whether nothing of it was fed that anybody looks at."""
        return self.observer is not None and not self.observer.first_token_seen

    @property
    def takes_signs(self) -> bool:
        """Whether signs of life may stand before its first piece: it is a stream, of a length that nobody was told."""
        if not self.stream or self.observer is None:
            return False
        return self.back is not None or all(name != b"content-length" for name, _ in self.exchange.headers)

    @property
    def done(self) -> bool:
        """Whether it said that it is over."""
        return self.observer is not None and self.observer.done

    def feed(self, data: bytes) -> bytes:
        """Take the next piece, cut anywhere, and return what the client is to get for it."""
        if self.observer is not None:
            self.observer.feed(data)
            if self._listener is not None:
                self._listener.feed(data)
        return data if self.back is None else self.back.feed(data)

    def end(self) -> bytes:
        """Return what is to follow the last piece: see `WayBack.end`."""
        return b"" if self.back is None else self.back.end()

    def failure(self) -> str:
        """Return the error that it told of instead of finishing, empty without one."""
        if self.observer is None:
            return ""
        seen = self.observer.observed()
        return "" if seen.finish else seen.error

    def report(self, turn: TurnId, restore_s: float | None = None) -> TurnFinished | TurnFailed:
        """Return how its turn ended. Where it is said in other words, its calls are known by the ids given there.

        `restore_s`: how long its run's KV took to be read back before, seconds; None where it was not.
        """
        report = ending_of(turn, self.placement, self.exchange, self.observer, self.back)
        if restore_s is not None and isinstance(report, TurnFinished):
            report = replace(report, restore_s=restore_s)
        return marked(report, self._said, self._listener)


def _observer(asked: Asked, forwarded: Forwarded, exchange: Exchange, *, stream: bool) -> Observer | None:
    """Return what looks at an engine's answer; nothing looks at one that is a failure."""
    if not 200 <= exchange.status < 300:
        return None
    if forwarded.back is not None:
        return StreamObserver() if stream else BodyObserver()
    return asked.dialect.observer(stream=stream)
