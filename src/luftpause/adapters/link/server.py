"""The scheduler's end of the link: listens, knows which peer is on which connection, and gives a lost one its grace.

What is said on a connection is `conversation`'s.
"""

import asyncio
import logging
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from luftpause.adapters.link.conversation import Conversation
from luftpause.adapters.link.gathering import Gathering
from luftpause.adapters.link.overtaking import Overtaking
from luftpause.adapters.link.wire import CLOSE_S, Wire
from luftpause.core.model.ids import PeerId, TurnId
from luftpause.core.model.turns import TurnOffer
from luftpause.ports.launcher import LauncherDesk
from luftpause.ports.scheduler import PeerSeen, SchedulerDesk

CONNECTIONS_MAX: Final = 1024
"""Open connections, strangers included; more are turned away."""

_log = logging.getLogger("luftpause.link")


@dataclass(frozen=True, slots=True, kw_only=True)
class Graces:
    """How long to wait for peers, seconds.

    Attributes:
        peer_s: how long a peer may be gone before its turns are over.
        resync_s: how long after the start returning peers may hold up others.
        others_s: how long the others are waited for once one has returned: every peer dials again within this.
    """

    peer_s: float = 10.0
    resync_s: float = 3.0
    others_s: float = 0.5


class PeerRegister(Protocol):
    """Remembers who is connected, over a restart of the scheduler."""

    @property
    def known(self) -> Collection[PeerId]:
        """Who was connected to the scheduler before this one."""
        ...

    def peers_changed(self, peers: Sequence[PeerId]) -> None:
        """These are connected now, or may come back within the grace. Must return at once."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Insiders:
    """Who has to do with those that connect, beside the desk.

    Attributes:
        register: who remembers them; None: nobody does.
        launchers: who takes launchers in; None: none may join.
    """

    register: PeerRegister | None = None
    launchers: LauncherDesk | None = None


class LinkServer:
    """Serves a desk at `host:port`; port 0 picks a free one.

    Args:
        desk: who answers.
        host: address to listen on.
        port: port to listen on.
        token: what every peer must present; empty: none.
        graces: how long to wait for peers.
        insiders: who else has to do with those that connect.
    """

    def __init__(
        self,
        desk: SchedulerDesk,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str = "",
        graces: Graces | None = None,
        insiders: Insiders | None = None,
    ) -> None:
        insiders = insiders or Insiders()
        graces = graces or Graces()
        self._desk = desk
        self._launchers = insiders.launchers
        self._register = insiders.register
        known = () if insiders.register is None else insiders.register.known
        self._gathering = Gathering(grace_s=graces.resync_s, others_s=graces.others_s, models=desk.models, known=known)
        self._overtaking = Overtaking(desk.lacks_word)
        self._host = host
        self._port = port
        self._token = token
        self._grace_s = graces.peer_s
        self._instance = secrets.token_hex(16)
        self._server: asyncio.Server | None = None
        self._conversations: set[Conversation] = set()
        self._peers: dict[PeerId, Conversation] = {}
        self._graces: dict[PeerId, asyncio.TimerHandle] = {}
        self._all_gone = asyncio.Event()
        self._closing = False

    @property
    def port(self) -> int:
        """The port listened on, once started."""
        return self._port

    async def start(self) -> None:
        """Begin to listen.

        Raises:
            OSError: the address is taken or not ours.
        """
        self._gathering.start()
        self._server = await asyncio.get_running_loop().create_server(self._new_wire, self._host, self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and close every connection. The desk is told nothing: its peers will be back."""
        if self._server is None:
            return
        self._closing = True
        self._gathering.close()
        self._overtaking.close()
        self._server.close()
        for grace in self._graces.values():
            grace.cancel()
        self._graces.clear()
        for conversation in tuple(self._conversations):
            conversation.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                while self._conversations:
                    self._all_gone.clear()
                    await self._all_gone.wait()
        except TimeoutError:
            for conversation in tuple(self._conversations):
                conversation.abort()
        await self._server.wait_closed()
        self._server = None

    def peers(self) -> Sequence[PeerSeen]:
        """Return the peers that are connected or in their grace, by name."""
        seen = {**dict.fromkeys(self._graces, False), **dict.fromkeys(self._peers, True)}
        return tuple(PeerSeen(peer=peer, is_connected=seen[peer]) for peer in sorted(seen))

    def has_room(self, conversation: Conversation) -> bool:
        """See FrontDesk."""
        self._conversations.add(conversation)
        return not self._closing and len(self._conversations) <= CONNECTIONS_MAX

    def keeps(self, conversation: Conversation, offer: TurnOffer) -> bool:
        """See FrontDesk. What a peer that is alone has to say was said in order."""
        return len(self._peers) > 1 and self._overtaking.defers(conversation, offer)

    def turn_over(self, turn: TurnId) -> None:
        """See FrontDesk."""
        self._overtaking.turn_over(turn)

    def greeted(self, conversation: Conversation, peer: PeerId) -> None:
        """See FrontDesk."""
        grace = self._graces.pop(peer, None)
        if grace is not None:
            grace.cancel()
        older = self._peers.get(peer)
        self._peers[peer] = conversation
        if older is not None:
            older.replaced()
        _log.info("peer_up", extra={"peer": peer})
        self._note_peers()

    def left(self, conversation: Conversation, *, for_good: bool) -> None:
        """See FrontDesk."""
        self._conversations.discard(conversation)
        self._gathering.left(conversation)
        self._overtaking.left(conversation)
        if not self._conversations:
            self._all_gone.set()
        peer = conversation.peer
        if peer is None or self._peers.get(peer) is not conversation:
            return
        del self._peers[peer]
        if self._closing:
            return
        _log.info("peer_down", extra={"peer": peer, "for_good": for_good})
        if for_good:
            self._note_peers()
            self._desk.peer_lost(peer)
        else:
            loop = asyncio.get_running_loop()
            self._graces[peer] = loop.call_later(self._grace_s, self._grace_over, peer)

    def _grace_over(self, peer: PeerId) -> None:
        del self._graces[peer]
        _log.warning("peer_lost", extra={"peer": peer, "grace_s": self._grace_s})
        self._note_peers()
        self._desk.peer_lost(peer)

    def _note_peers(self) -> None:
        if self._register is not None:
            self._register.peers_changed(sorted({*self._peers, *self._graces, *self._gathering.missing}))

    def _new_wire(self) -> Wire:
        conversation = Conversation(
            self._desk,
            self,
            self._gathering,
            token=self._token,
            instance=self._instance,
            launchers=self._launchers,
        )
        return conversation.new_wire()
