"""An application behind its guard on an address: how every HTTP door of the product is opened and closed."""

import ipaddress
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from luftpause.adapters.door_guard.guard import DoorGuard
from luftpause.adapters.door_guard.keyring import Key, Keyring
from luftpause.adapters.http_server.listening import CannotListenError
from luftpause.adapters.http_server.refusal import PLAIN, Refusals
from luftpause.adapters.http_server.server import ApplicationFailedError, HttpServer
from luftpause.assembly.start_failed import StartFailedError
from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, PrincipalId
from luftpause.core.model.principals import OPERATOR
from luftpause.ports.asgi import Application

DRAIN_S = 5.0
"""Seconds that open requests get to end once a door closes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a door opens, and for whom.

    Attributes:
        option: what sets the port, for the message when it is taken.
        allowed_hosts: further host names that the door answers for.
        allowed_origins: web origins that may call, besides the door's own.
        drain_s: how long open requests get to end once the door closes.
        shared: whether other processes serve the same port.
        open_paths: what needs no token besides `/health`, because it tells nothing.
    """

    host: str
    port: int
    option: str
    allowed_hosts: Sequence[str] = ()
    allowed_origins: Sequence[str] = ()
    drain_s: float = DRAIN_S
    shared: bool = False
    open_paths: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may come in.

    Attributes:
        token: the operator's, for every door and the link; "" asks nobody for any.
        principals: the others, who may use the LLM door and the MCP door. Where there are some, `token` is not empty.
        open_to_all: allows a public door that asks for no token.
    """

    token: str = field(default="", repr=False)
    principals: Sequence[Key] = ()
    open_to_all: bool = False

    @property
    def keyring(self) -> Keyring:
        """The tokens of all."""
        operator = [Key(token=self.token, principal=OPERATOR)] if self.token else []
        return Keyring((*operator, *self.principals))

    @property
    def tokens(self) -> Mapping[PrincipalId, str]:
        """What a run's own principal presents. What began when no token was asked for goes on as the operator's."""
        tokens = {key.principal.name: key.token for key in self.principals}
        return {**tokens, OPERATOR.name: self.token, ANONYMOUS_PRINCIPAL: self.token} if self.token else tokens

    def for_operator(self) -> "Access":
        """Return the same for a door that only the operator may use."""
        return replace(self, principals=())

    def check(self, address: Address) -> None:
        """Refuse to open a door to other machines that asks for nothing.

        Raises:
            StartFailedError: it would be open to anyone who can reach this machine.
        """
        if not self.token and not self.open_to_all and not is_loopback(address.host):
            raise StartFailedError(
                f"{address.option.removesuffix('port')}host {address.host!r} is reachable from other machines and "
                "asks for no token: set LUFTPAUSE_TOKEN, or say --allow-unauthenticated"
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens on `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@asynccontextmanager
async def open_door(
    app: Application,
    address: Address,
    access: Access,
    *,
    lifespan: bool = False,
    key_in_query: bool = False,
    refusals: Refusals = PLAIN,
) -> AsyncIterator[HttpServer]:
    """Serve `app` for the length of a block; at its end open requests may still finish for a while.

    Raises:
        StartFailedError: the address cannot be used, or not without a token.
    """
    access.check(address)
    guarded = DoorGuard(
        app,
        allowed_hosts=(address.host, *address.allowed_hosts),
        allowed_origins=address.allowed_origins,
        keyring=access.keyring.leaving_open(address.open_paths),
        key_in_query=key_in_query,
        refusals=refusals,
    )
    server = HttpServer(
        guarded, host=address.host, port=address.port, lifespan=lifespan, refusals=refusals, shared=address.shared
    )
    try:
        await server.start()
    except (CannotListenError, ApplicationFailedError) as error:
        raise StartFailedError(f"{address.option}: {error}") from error
    try:
        yield server
    finally:
        await server.close(address.drain_s)
