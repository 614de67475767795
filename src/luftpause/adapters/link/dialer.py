"""Keeps a connection to the scheduler: dials, says hello, waits until it is lost, backs off, dials again.

It knows the first two frames and the last; everything between goes to its owner.
"""

import asyncio
import logging
import secrets
from typing import Final, Protocol

from luftpause.adapters.link.codec import FrameError, FrameReader, server_frame, to_bytes
from luftpause.adapters.link.frames import (
    FAULT_ILL_FORMED,
    FAULT_PROTOCOL,
    FAULT_TOKEN,
    LINK_PROTOCOL,
    Fault,
    Hello,
    ServerFrame,
    Welcome,
)
from luftpause.adapters.link.wire import Wire

DIAL_S: Final = 5.0
"""How long connecting, and then the welcome, may take each."""

PAUSE_S_MIN: Final = 0.1
"""The first pause before dialling again; it doubles before each further one."""

STEADY_S: Final = 5.0
"""A link that was up for longer starts again with the shortest pause, and its next trouble is logged again."""

UNSENT_MAX: Final = 64 * 1024 * 1024
"""A whole resync of a full ledger and thousands of held turns leave at once; past this the scheduler is stuck."""

_log = logging.getLogger("luftpause.link")


class DialerOwner(Protocol):
    """Who uses the connection."""

    def link_up(self, wire: Wire, instance: str) -> None:
        """The scheduler welcomed us on this wire."""
        ...

    def frame_received(self, frame: ServerFrame) -> None:
        """The scheduler said something after its welcome."""
        ...

    def link_down(self) -> None:
        """A welcomed connection is gone."""
        ...

    def token_refused(self, message: str) -> None:
        """The scheduler does not know our token."""
        ...


class Dialer:
    """One connection at a time, for ever. Logs each kind of trouble once per outage.

    `retry_s` is the longest pause, seconds. Keep it short: a scheduler that was started anew waits so long for its
    peers to return (`gathering`).
    """

    def __init__(self, host: str, port: int, *, hello: Hello, owner: DialerOwner, retry_s: float) -> None:
        self._host = host
        self._port = port
        self._retry_s = retry_s
        self._hello = to_bytes(hello)
        self._owner = owner
        self._wire: Wire | None = None
        self._up_since: float | None = None
        self._explained = False
        self._leaving = False
        self._told: set[str] = set()
        self._pause_s = min(PAUSE_S_MIN, retry_s)
        self._welcome_by: asyncio.TimerHandle | None = None

    def leave(self) -> None:
        """Dial no more once the present connection is gone."""
        self._leaving = True

    async def run(self) -> None:
        """Stay connected until cancelled, or until the connection ends after `leave`."""
        try:
            while True:
                wire = await self._dial()
                if wire is not None:
                    await wire.lost
                if self._leaving:
                    return
                await asyncio.sleep(self._pause_s * (0.5 + secrets.randbelow(1000) / 2000))
                self._pause_s = min(self._retry_s, self._pause_s * 2)
        finally:
            if self._wire is not None:
                self._wire.abort()

    async def _dial(self) -> Wire | None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(DIAL_S):
                _, wire = await loop.create_connection(self._new_wire, self._host, self._port)
        except (OSError, UnicodeError) as error:  # TimeoutError is an OSError; a host that is no name, a UnicodeError
            self._trouble("unreachable", str(error) or type(error).__name__)
            return None
        return wire

    def _new_wire(self) -> Wire:
        return Wire(self, FrameReader(), unsent_max=UNSENT_MAX, patient=False)

    def wire_opened(self, wire: Wire) -> None:
        """See Listener."""
        self._wire = wire
        self._explained = False
        self._welcome_by = asyncio.get_running_loop().call_later(DIAL_S, self._not_welcomed)
        wire.send(self._hello)

    def payload_received(self, payload: bytes) -> None:
        """See Listener."""
        frame = server_frame(payload)
        match frame:
            case Fault(code=code, message=message):
                self._parted(code, message)
            case Welcome() if self._up_since is None:
                self._welcomed(frame)
            case _ if self._up_since is not None:
                self._owner.frame_received(frame)
            case _:
                raise FrameError(f"{type(frame).__name__} before the welcome")

    def batch_taken(self) -> None:
        """See Listener. Nothing is owed for a batch."""

    def ill_formed(self, error: FrameError) -> None:
        """See Listener."""
        self._parted(FAULT_ILL_FORMED, str(error))

    def wire_lost(self) -> None:
        """See Listener."""
        self._end_wait()
        up_since, self._up_since = self._up_since, None
        if up_since is not None and asyncio.get_running_loop().time() - up_since > STEADY_S:
            self._told.clear()
            self._pause_s = min(PAUSE_S_MIN, self._retry_s)
        if self._wire is not None and self._wire.overflowed:
            self._trouble("stuck", "the scheduler does not read what it is sent")
        elif not self._explained:
            self._trouble("lost", "the connection ended" if up_since is not None else "it ended before the welcome")
        self._wire = None
        if up_since is not None:
            self._owner.link_down()

    def _welcomed(self, welcome: Welcome) -> None:
        if welcome.protocol != LINK_PROTOCOL:
            self._parted(FAULT_PROTOCOL, f"the scheduler speaks protocol {welcome.protocol}, we {LINK_PROTOCOL}")
            return
        assert self._wire is not None
        self._end_wait()
        self._up_since = asyncio.get_running_loop().time()
        _log.info("link_up", extra={"address": self._address()})
        self._owner.link_up(self._wire, welcome.instance)

    def _parted(self, code: str, message: str) -> None:
        self._explained = True
        self._trouble(code, message)
        if self._wire is not None:
            self._wire.abort()
        if code == FAULT_TOKEN:
            self._owner.token_refused(message)

    def _not_welcomed(self) -> None:
        self._parted("no_welcome", f"no welcome within {DIAL_S:g} s")

    def _end_wait(self) -> None:
        if self._welcome_by is not None:
            self._welcome_by.cancel()
            self._welcome_by = None

    def _trouble(self, kind: str, message: str) -> None:
        if kind not in self._told and not self._leaving:
            self._told.add(kind)
            _log.warning("link_down", extra={"address": self._address(), "kind": kind, "cause": message})

    def _address(self) -> str:
        return f"{self._host}:{self._port}"
