"""One turn from admission to its end: held, placed, sent to its engine, streamed back.

From before the admission on, a client that leaves cancels its turn. Whatever happens, the turn ends exactly once and
the engine's connection is closed or given back. An end is reported before the client can see it, since the next turn
of its run may follow at once.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Sequence
from typing import Final

from luftpause.core.dialects.dialect import UnfitAnswerError
from luftpause.core.dialects.engine_refusals import is_unseen, read_refusal
from luftpause.core.dialects.failures import Failure, FailureCode, refused
from luftpause.core.dialects.harness import ping_for
from luftpause.core.dialects.request import BadRequestError
from luftpause.core.model.ids import RunId
from luftpause.core.model.replicas import Placement
from luftpause.core.model.turns import TurnOffer
from luftpause.core.scheduling.events import FirstTokenSeen, TurnAbandoned, TurnFailed
from luftpause.ports.asgi import Answering, Running
from luftpause.ports.engines import EngineBrokeError, EngineUnreachableError, Exchange, Header, Sink
from luftpause.ports.scheduler import LinkFaultError, LinkRefusedError, TurnRefusedError
from luftpause.services.dataplane.answers import say_last, send_body, send_failure
from luftpause.services.dataplane.counts import GONE
from luftpause.services.dataplane.endings import (
    BUSY,
    REFUSAL_BYTES_MAX,
    SHUT_DOWN,
    check_stays,
    pause_s,
)
from luftpause.services.dataplane.forwarding import CHAT, Asked, forward
from luftpause.services.dataplane.headers import PARENT_HEADER, for_client, fresh_run, reframed, retold
from luftpause.services.dataplane.keepalive import WAITING, Keepalive, Waiting
from luftpause.services.dataplane.noting import note
from luftpause.services.dataplane.passing import Measuring, PassingAnswer, measure, read_up_to
from luftpause.services.dataplane.recalling import Recall, running_task
from luftpause.services.dataplane.restoring import restore
from luftpause.services.dataplane.surroundings import ClientCall, Surroundings
from luftpause.services.dataplane.uncapping import REFUSED, ask_uncapped

_SECONDS: Final = time.monotonic
_LOGGER: Final = logging.getLogger("luftpause.dataplane")


class TurnCourse(Sink, Answering, Waiting):
    """Takes one turn through. `run` is the client's, None when it names none; the scheduler has the last word."""

    __slots__ = (
        "_answer",
        "_around",
        "_asked",
        "_client_left",
        "_committed",
        "_counted",
        "_counts",
        "_dialect",
        "_exchange",
        "_head_sent",
        "_keepalive",
        "_line",
        "_offer",
        "_over",
        "_recall",
        "_restore_s",
        "_run",
        "_send",
        "_shut_down",
        "_since",
        "_spoke",
        "_told",
        "_wants_stream",
    )

    _answer: PassingAnswer

    def __init__(
        self, around: Surroundings, call: ClientCall, *, run: RunId | None, offer: TurnOffer, asked: Asked
    ) -> None:
        self._around = around
        self._line = call.line
        self._send = call.send
        self._run = run
        self._offer = offer
        self._counts = around.counts.of(offer.service_class)
        self._asked: Asked | None = asked
        self._dialect = asked.dialect
        self._wants_stream = asked.stream
        self._exchange: Exchange | None = None
        self._keepalive: Keepalive | None = None
        self._client_left = False
        self._shut_down = False
        self._head_sent = False
        self._committed = False
        self._counted = False
        self._recall = Recall(around.turns)
        self._spoke = False
        self._told: tuple[Header, ...] = ()
        self._over = False
        self._restore_s: float | None = None
        self._since = _SECONDS()

    async def take(self) -> None:
        """Take the turn to its end."""
        self._line.on_leave(self)
        ending: type[TurnAbandoned] | str = "the dataplane failed"
        try:
            if self._wants_stream and self._around.settings.keepalive_s:
                self._keepalive = self._around.keepalives.begin(self)
            while (placement := await self._place()) is not None:
                try:
                    pause_s = await self._forward(placement)
                except asyncio.CancelledError:
                    if not self._recall.is_done(self._offer):
                        raise
                    pause_s, self._committed = 0.0, self._head_sent
                if pause_s is None:
                    break
                await asyncio.sleep(pause_s)
                self._offer = self._recall.offered_again(self._offer, self._run, _SECONDS() - self._since)
        except asyncio.CancelledError:
            if self._client_left:
                ending = TurnAbandoned
                self._counts.answered(GONE)
            else:
                ending = "the dataplane shut down"
                if not self._shut_down:
                    raise
                await self._break_off(SHUT_DOWN, ending)
            running_task().uncancel()
        finally:
            self._over = True
            self._line.on_leave(None)
            self._stop_keepalive()
            if self._exchange is not None:
                self._exchange.close()
            turn = self._offer.turn
            report = TurnFailed(turn=turn, cause=ending) if isinstance(ending, str) else ending(turn=turn)
            self._around.turns.end(turn, report)

    def client_leaves(self, task: Running) -> None:
        """See `Answering`: the turn is cancelled."""
        if not self._over:
            self._client_left = self._line.left
            self._shut_down = not self._client_left
            task.cancel()

    async def _place(self) -> Placement | None:
        """Return where the turn runs, None when it was refused and the client was told."""
        try:
            ticket = await self._around.link.admit(self._offer)
            self._run = ticket.run
            if ticket.parent is not None:
                self._told = ((PARENT_HEADER, ticket.parent.encode("ascii")),)
            placement = ticket.placed or await ticket.placement
        except TurnRefusedError as error:
            self._around.turns.end(self._offer.turn, None)
            await self._fail(refused(error.refusal))
            return None
        except (LinkRefusedError, LinkFaultError) as error:
            await self._scheduler_failed(str(error))
            return None
        except asyncio.CancelledError:
            if running_task().cancelling():
                raise
            await self._scheduler_failed("the scheduler dropped the turn")  # the placement was cancelled, not we
            return None
        self._counts.held.add(_SECONDS() - self._since)
        return placement

    async def _forward(self, placement: Placement) -> float | None:
        """Send the turn to its engine and the answer to the client.

        Return None when the turn is over; the seconds after which to offer it again when its engine is busy and the
        client was told 200 already.
        """
        turn, turns, asked = self._offer.turn, self._around.turns, self._asked
        assert asked is not None, "a turn that was answered is not forwarded again"
        try:
            speaks = self._dialect.name == CHAT or await self._around.spoken.at(placement, self._dialect.name)
            if placement.restore:
                self._restore_s = await restore(self._around.engines, placement, turn)
            forwarded = forward(asked, placement, speaks=speaks, turn=turn, allowed=self._around.settings.edits)
            self._recall.allow(self._offer, forwarded.request)
            exchange = self._exchange = await self._around.engines.send(placement.endpoint, forwarded.request)
            if forwarded.reply_cap and exchange.status == REFUSED:
                exchange.close()
                forwarded, exchange = await ask_uncapped(self._around, asked, placement, speaks=speaks, turn=turn)
                self._exchange = exchange
        except BadRequestError as error:
            turns.end(turn, TurnFailed(turn=turn, cause=str(error)))
            await self._fail(Failure(code=FailureCode.BAD_REQUEST, message=str(error)))
            return None
        except (EngineUnreachableError, EngineBrokeError) as error:
            cause = self._engine_failed(placement, error)
            await self._fail(Failure(code=FailureCode.ENGINE_FAILED, message=cause))
            return None
        if self._head_sent and exchange.status in BUSY:
            return self._step_back(PassingAnswer(asked, forwarded, placement, exchange))
        if forwarded.back is None and self._dialect.name != CHAT:
            self._around.spoken.answered(placement, self._dialect.name, exchange.status)
        self._told += note(self._around.counts, forwarded, self._dialect.name, placement.replica)
        answer = PassingAnswer(asked, forwarded, placement, exchange)
        measure(answer, turns, self._offer)
        if not self._recall.begun(self._offer, exchange, silent=self._wants_stream and answer.takes_signs):
            self._asked = None
        del asked, forwarded  # a long stream need not hold a long prompt
        try:
            await self._answering(answer)
            if not self._over:
                answer.check_whole()
        except (EngineBrokeError, UnfitAnswerError) as error:
            cause = self._engine_failed(placement, error)
            await self._break_off(Failure(code=FailureCode.ENGINE_FAILED, message=cause), cause)
        return None

    def _answering(self, answer: PassingAnswer) -> Awaitable[None]:
        """Return what answers the client."""
        answer.fit(promised=self._head_sent and self._wants_stream)
        if answer.observer is None and (self._head_sent or answer.may_be_reworded):
            return self._refuse(answer)
        if answer.back is not None and not (self._wants_stream and answer.stream):
            return self._answer_whole(answer)
        if not (answer.takes_signs and self._wants_stream):
            self._stop_keepalive()
        return self._pass_on(answer)

    def _pass_on(self, answer: PassingAnswer) -> Awaitable[None]:
        """Send an answer on as it comes, and look at it in passing."""
        exchange, self._answer = answer.exchange, answer
        if answer.observer is None:  # it refused: whatever else it says, the turn is over
            self._end(answer)
            answer.linger()
        self._count(exchange.status)
        headers = exchange.headers if answer.back is None else retold(exchange.headers, self._dialect.stream_type)
        self._send_head(exchange.status, headers)
        return exchange.pour(self if answer.growth is None else Measuring(answer, self))

    def take_piece(self, data: bytes, is_last: bool) -> bool:
        """See `Sink`."""
        answer, line = self._answer, self._line
        if data:
            if answer.begins:
                self._spoke = True
                self._answer_begins(answer.exchange)
            data = answer.feed(data)
        if is_last:
            data += answer.end()
        if data or is_last:  # comments of the engine, for one, are no sign of life in other words
            self._stop_keepalive()
        if is_last and not answer.broke_off:
            self._end(answer)
            self._over = True
            say_last(line, self._dialect, data, has_failed=answer.back is not None and bool(answer.back.failure))
            return True
        if answer.done:
            self._end(answer)
            answer.linger()
        return line.write(data)

    def room(self) -> Awaitable[None]:
        """See `Sink`."""
        return self._line.room()

    def _count(self, status: int) -> None:
        """Count an answer that is passed on; of a turn that came back, two may begin to be."""
        if not self._counted:
            self._counted = True
            self._counts.answered(str(status))

    def _answer_begins(self, exchange: Exchange) -> None:
        turn, turns = self._offer.turn, self._around.turns
        self._asked = None  # from its first byte on it is not sent anywhere else
        turns.stays(turn)
        if exchange.status == 200:
            self._counts.first_byte.add(_SECONDS() - self._since)
            turns.tell(FirstTokenSeen(turn=turn))

    async def _answer_whole(self, answer: PassingAnswer) -> None:
        """Collect an answer and send it in other words, or in another form."""
        exchange = answer.exchange
        await answer.collect(self._answer_begins)
        whole = answer.end()
        self._end(answer)
        self._over = True
        self._counts.answered(str(exchange.status))
        if self._wants_stream:
            self._stop_keepalive()
            self._send_head(exchange.status, retold(exchange.headers, self._dialect.stream_type))
            self._line.end(whole)
            return
        more = (*reframed(exchange.headers), *self._told)
        await send_body(self._send, self._known_run, whole, status=exchange.status, more=more)

    async def _refuse(self, answer: PassingAnswer) -> None:
        """Tell of an engine's refusal, in other words where its own will not do."""
        exchange, replica = answer.exchange, answer.placement.replica
        check_stays(exchange)
        self._end(answer)
        answer.linger()
        body = await read_up_to(exchange, REFUSAL_BYTES_MAX)
        said = read_refusal(exchange.status, body).message
        if answer.unread or is_unseen(said):  # some engines call it a fault of theirs, and their clients try again
            await self._fail(Failure(code=FailureCode.BAD_REQUEST, message=f"engine {replica}: {said}{answer.unread}"))
            return
        if self._head_sent:
            message = f"engine {replica}: status {exchange.status}: {body.decode('utf-8', 'replace').strip()}"
            await self._fail(Failure(code=FailureCode.ENGINE_FAILED, message=message))
            return
        self._over = True
        self._stop_keepalive()
        self._counts.answered(str(exchange.status))
        words = (self._dialect.reworded if answer.back is None else answer.back.error)(exchange.status, body)
        if words:
            more = reframed(exchange.headers)
            await send_body(self._send, self._known_run, words, status=exchange.status, more=more)
        else:
            self._send_head(exchange.status, exchange.headers)
            self._line.end(body)

    def _step_back(self, answer: PassingAnswer) -> float:
        """End a turn whose engine is busy, and return after how many seconds to offer it again."""
        self._end(answer)
        answer.exchange.close()
        self._exchange = None
        return pause_s(answer.exchange)

    def _end(self, answer: PassingAnswer) -> None:
        """Report the end of the turn, unless that was done."""
        turn = self._offer.turn
        if turn in self._around.turns:
            self._around.turns.end(turn, answer.report(turn, self._restore_s))

    def _engine_failed(self, placement: Placement, error: Exception) -> str:
        """End the turn as failed by its engine; return why."""
        cause = f"engine {placement.replica}: {error}"
        if not isinstance(error, UnfitAnswerError):
            self._around.spoken.forget(placement)
        self._end_as_failed(cause)
        return cause

    async def _break_off(self, failure: Failure, cause: str) -> None:
        """Tell of an answer that will not be whole: by cutting it, where some of it was sent."""
        self._around.turns.end(self._offer.turn, TurnFailed(turn=self._offer.turn, cause=cause))
        if self._head_sent and (self._spoke or not self._committed):
            self._stop_keepalive()
            self._line.cut()
        else:
            await self._fail(failure)

    def _end_as_failed(self, cause: str) -> None:
        turn = self._offer.turn
        _LOGGER.warning("turn_failed", extra={"turn": turn, "run": self._run, "cause": cause})
        self._around.turns.end(turn, TurnFailed(turn=turn, cause=cause))

    async def _scheduler_failed(self, cause: str) -> None:
        self._end_as_failed(cause)
        await self._fail(Failure(code=FailureCode.SCHEDULER_FAULT, message=cause))

    async def _fail(self, failure: Failure) -> None:
        self._stop_keepalive()
        self._counts.answered(str(failure.status))
        if self._head_sent:
            await self.room()
            say_last(self._line, self._dialect, self._dialect.error_event(failure), has_failed=True)
        else:
            await send_failure(self._send, self._known_run, failure, dialect=self._dialect)

    @property
    def _known_run(self) -> RunId:
        return self._run or fresh_run()

    def _stop_keepalive(self) -> None:
        if self._keepalive is not None:
            self._keepalive.stop()
            self._keepalive = None

    async def show_life(self) -> None:
        """See `Waiting`: from the first one on the client has a 200."""
        if self._run is None:
            return  # no header goes out before the run is known
        await self.room()
        if not self._head_sent:
            self._send_head(200, retold(WAITING, self._dialect.stream_type))
            self._committed = True
        self._line.write(ping_for(self._offer.keys.session, self._dialect.name, self._dialect.ping))

    def _send_head(self, status: int, headers: Sequence[Header]) -> None:
        """Send the head, unless that was done: of an engine's headers those that go on, the run's and ours."""
        if not self._head_sent:
            head = for_client(headers, self._known_run)
            head.extend(self._told)
            self._line.begin(status, head)
            self._head_sent = True
