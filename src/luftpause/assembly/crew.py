"""The LLM door served by several processes on one port: what starts them, and what each is told to do."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from luftpause.adapters.crew.foreman import CrewLostError, Foreman
from luftpause.adapters.crew.worker import WorkerFailedError, WorkerPlan
from luftpause.adapters.http_server.listening import CannotListenError, address_of, reserve
from luftpause.assembly.declared import require_keys
from luftpause.assembly.doors import Access
from luftpause.assembly.parts import Plans, dataplane_address
from luftpause.assembly.start_failed import StartFailedError
from luftpause.config.schema import Config
from luftpause.config.units import seconds
from luftpause.core.processes.state import Limits

READY_S: Final = 60.0
"""From a worker's start to its open door; a slow machine needs some seconds to load the program."""

END_MARGIN_S: Final = 10.0
"""What a worker may take beyond the drain of its door before it is killed."""

BACKOFF_S: Final = (0.2, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 30.0)
"""Pauses before restarts in a row. The first is short: a worker that served is missed."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is told to do: to open the LLM door of a configuration. It travels between our own processes only.

    Attributes:
        config: as its foreman read it, with the ports that its foreman found.
        access: who may come in, tokens included.
    """

    config: Config
    access: Access

    def to_bytes(self) -> bytes:
        """Return the order as it travels."""
        return msgspec.msgpack.encode(self)


def order_from(data: bytes) -> Order:
    """Return an order that `to_bytes` wrote.

    Raises:
        msgspec.ValidationError: another program wrote it.
    """
    return msgspec.msgpack.decode(data, type=Order)


@asynccontextmanager
async def crew_part(plans: Plans, *, link_port: int) -> AsyncIterator[str]:
    """Serve the LLM door with `dataplane.workers` processes for the length of a block; yields its base URL.

    All of them are ready then. They hold the scheduler over its link at `link_port`. Leaving the block lets them drain.

    Raises:
        ConfigError: the key of a replica is not set.
        StartFailedError: the address cannot be used, a worker did not start, or, later, none is left.
    """
    if sys.platform != "linux":
        raise StartFailedError("dataplane.workers: several processes on one port need Linux; set it to 1")
    config, replace = plans.config, msgspec.structs.replace
    require_keys(config, os.environ)
    address = dataplane_address(plans)
    plans.access.check(address)
    try:
        holder = await reserve(address.host, address.port)
    except CannotListenError as error:
        raise StartFailedError(f"{address.option}: {error}") from error
    with holder:
        port = holder.getsockname()[1]
        order = Order(
            config=replace(
                config,
                dataplane=replace(config.dataplane, port=port),
                scheduler=replace(config.scheduler, port=link_port),
            ),
            access=plans.access,
        ).to_bytes()
        limits = Limits(
            readiness_timeout_s=READY_S,
            stop_grace_s=seconds(config.dataplane.drain) + END_MARGIN_S,
            backoff_s=BACKOFF_S,
        )
        foreman = Foreman(
            [
                WorkerPlan(number=number, command=plans.worker_command, order=order, limits=limits)
                for number in range(1, config.dataplane.workers + 1)
            ]
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_run(foreman), name="luftpause-crew")
            try:
                await foreman.ready()
                yield f"http://{address_of(address.host, port)}"
            except WorkerFailedError as error:
                raise StartFailedError(f"dataplane.workers: {error}; its own lines above say why") from error
            finally:
                foreman.stop()


async def _run(foreman: Foreman) -> None:
    try:
        await foreman.run()
    except CrewLostError as error:
        raise StartFailedError(f"dataplane.workers: {error}; the log says why") from error
