"""Who listens where our doors are configured. Asked without any token: it might be anybody."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import PurePath
from typing import Final
from urllib.parse import urlsplit

from luftpause.adapters import process_table
from luftpause.assembly.doors import is_loopback
from luftpause.cli.asking import url_of
from luftpause.cli.examining.subject import BODY_BYTES_MAX, Subject
from luftpause.config.check import EVERYWHERE
from luftpause.config.schema import Config
from luftpause.core.model.replicas import Endpoint

NOWHERE: Final = "/doctor"
"""A path that no door has: each says what it is in answer, and a door with a token asks for that."""
_WORDS: Final = ("the LLM door serves", "this is the scheduler", "the MCP door speaks MCP", "the token is missing or")
_UNAUTHORIZED: Final = 401
_COMMAND_MAX: Final = 60


class Whose(Enum):
    """Who listens at an address."""

    NOBODY = "nobody"
    OURS = "ours"
    ANOTHER = "another"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """A configured address. `key` is what configures its port, `option` what does for `luftpause up`."""

    service: str
    title: str
    host: str
    port: int
    key: str
    option: str
    speaks_http: bool = True

    @property
    def url(self) -> str:
        """Where it is reached from here."""
        return url_of(self.host, self.port)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorSeen:
    """What was seen of it.

    Attributes:
        cause: why it cannot be reached, or how it failed to say who it is.
        pid: the process that listens; None where that cannot be seen.
        command: how that was started, for people.
        asks_for_token: whether it does; None where it did not say.
    """

    door: Door
    whose: Whose
    cause: str = ""
    pid: int | None = None
    command: str = ""
    asks_for_token: bool | None = None


def doors_of(config: Config) -> tuple[Door, ...]:
    """Return all of them."""
    dataplane, runtime, scheduler = config.dataplane, config.runtime, config.scheduler
    return (
        Door(
            service="dataplane",
            title="LLM door",
            host=dataplane.host,
            port=dataplane.port,
            key="dataplane.port",
            option="--dataplane-port",
        ),
        Door(
            service="runtime",
            title="MCP door",
            host=runtime.host,
            port=runtime.port,
            key="runtime.port",
            option="--runtime-port",
        ),
        Door(
            service="scheduler",
            title="status",
            host=scheduler.host,
            port=scheduler.http_port,
            key="scheduler.http_port",
            option="--status-port",
        ),
        Door(
            service="scheduler",
            title="link",
            host=scheduler.host,
            port=scheduler.port,
            key="scheduler.port",
            option="--link-port",
            speaks_http=False,
        ),
    )


async def all_seen(subject: Subject, doors: Iterable[Door]) -> list[DoorSeen]:
    """Look at all that have a port of their own, side by side."""
    seen = await asyncio.gather(*(_seen(subject, door) for door in doors if door.port))
    status = next((each for each in seen if each.door.service == "scheduler" and each.door.speaks_http), None)
    return [each if each.door.speaks_http else _as_link(each, status) for each in seen]


async def _seen(subject: Subject, door: Door) -> DoorSeen:
    cause = await _refusal(subject, door)
    if cause is None:
        return DoorSeen(door=door, whose=Whose.NOBODY)
    if cause:
        return DoorSeen(door=door, whose=Whose.UNREACHABLE, cause=cause)
    pid, command = await asyncio.to_thread(_listener, door)
    if not door.speaks_http:
        return DoorSeen(door=door, whose=Whose.ANOTHER, pid=pid, command=command)
    fetched = await subject.fetcher.fetch(Endpoint(url=door.url), NOWHERE, BODY_BYTES_MAX, any_status=True)
    is_ours = fetched.text is not None and any(word in fetched.text for word in _WORDS)
    return DoorSeen(
        door=door,
        whose=Whose.OURS if is_ours else Whose.ANOTHER,
        cause="" if fetched.status else fetched.cause,
        pid=pid,
        command=command,
        asks_for_token=fetched.status == _UNAUTHORIZED if is_ours else None,
    )


def _as_link(seen: DoorSeen, status: DoorSeen | None) -> DoorSeen:
    """Return whose the link is: it says nothing to strangers, but it is the scheduler's, as the status is."""
    if status is None or status.whose is not Whose.OURS or seen.whose is not Whose.ANOTHER:
        return seen
    return replace(seen, whose=Whose.OURS) if seen.pid == status.pid else seen


async def _refusal(subject: Subject, door: Door) -> str | None:
    """Return why one cannot connect, empty where one can; None where nobody listens."""
    try:
        async with asyncio.timeout(subject.look_s):
            _, writer = await asyncio.open_connection(urlsplit(door.url).hostname, door.port)
    except ConnectionRefusedError:
        return None
    except TimeoutError:
        return f"nothing answers within {subject.look_s:g} s"
    except OSError as error:
        return f"cannot connect: {error.strerror or error}"
    writer.close()
    return ""


def _listener(door: Door) -> tuple[int | None, str]:
    """Return the process that listens here and how it was started."""
    pid = process_table.listener_on(door.port) if door.host in EVERYWHERE or is_loopback(door.host) else None
    command = process_table.command_of(pid) if pid is not None else ()
    words = " ".join((PurePath(command[0]).name, *command[1:])) if command else ""
    return pid, words[:_COMMAND_MAX]
