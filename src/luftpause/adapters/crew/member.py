"""A worker's end: it takes its order, says when its door is open, and asks for what all workers counted."""

import asyncio
import contextlib
import itertools
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from luftpause.adapters.crew.frames import Ask, Begin, ChannelError, Opened, Tell, Together, Told, hear, say
from luftpause.ports.crew import CrewAwayError
from luftpause.telemetry.exposition import Counts

COUNTS_S: Final = 5.0
"""How long the foreman may take to ask all workers; longer than it waits for one that does not answer."""

_LOG = logging.getLogger("luftpause.crew")


class Member:
    """One worker among the others; see `Crew`. `order` is what it is to do."""

    def __init__(self, writer: asyncio.StreamWriter, order: bytes) -> None:
        self.order = order
        self._writer = writer
        self._own: Callable[[], Counts] = tuple
        self._requests = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Counts]] = {}

    def opened(self) -> None:
        """Say that the door is open."""
        say(self._writer, Opened())

    def shows(self, own: Callable[[], Counts]) -> None:
        """See Crew."""
        self._own = own

    async def counts(self) -> Counts:
        """See Crew."""
        request = next(self._requests)
        answer = self._asked[request] = asyncio.get_running_loop().create_future()
        say(self._writer, Ask(request))
        try:
            async with asyncio.timeout(COUNTS_S):
                counts: Counts = await answer
        except TimeoutError as error:
            raise CrewAwayError("the other workers cannot be asked what they counted") from error
        finally:
            del self._asked[request]
        return counts

    async def listen(self, reader: asyncio.StreamReader) -> None:
        """Answer the foreman until it is gone."""
        try:
            while (frame := await hear(reader)) is not None:
                match frame:
                    case Tell(request=request):
                        say(self._writer, Told(request, tuple(self._own())))
                    case Together(request=request, counts=counts):
                        answer = self._asked.get(request)
                        if answer is not None and not answer.done():
                            answer.set_result(counts)
                    case _:
                        raise ChannelError(f"{type(frame).__name__} is nothing that a worker is told")
        except ChannelError as error:
            _LOG.warning("crew_channel_broken", extra={"cause": str(error)})


@asynccontextmanager
async def enrolled(channel: int, foreman_gone: Callable[[], None]) -> AsyncIterator[Member]:
    """Be a worker for the length of a block.

    Args:
        channel: the descriptor that the foreman handed over.
        foreman_gone: called once it is gone; nobody wants this worker any more then.

    Raises:
        ChannelError: the foreman does not say what is to be done.
    """
    reader, writer = await asyncio.open_unix_connection(sock=socket.socket(fileno=channel))
    try:
        first = await hear(reader)
        if not isinstance(first, Begin):
            raise ChannelError(f"the first frame is no order but {type(first).__name__}")
        member = Member(writer, first.order)
        listening = asyncio.create_task(member.listen(reader), name="luftpause-crew")
        listening.add_done_callback(lambda _: foreman_gone())
        try:
            yield member
        finally:
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
