"""A scheduler service on a real event loop, and short ways to talk to it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from luftpause.core.model.ids import (
    ANONYMOUS_CALLER,
    ANONYMOUS_PRINCIPAL,
    CallerId,
    ModelName,
    PeerId,
    PrincipalId,
    ReplicaId,
    RunId,
    ToolCallId,
    TurnId,
)
from luftpause.core.model.replicas import Endpoint, Load, ReplicaKind, ReplicaSpec
from luftpause.core.model.turns import IdentityKeys, ServiceClass, TurnOffer
from luftpause.core.scheduling.events import ReplicaProbed
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.scheduler.settings import SchedulerSettings

Result = TypeVar("Result")
WAIT_S = 10.0


def run(story: Callable[[], Coroutine[object, object, Result]]) -> Result:
    """Run a test's coroutine to its end, within bounds."""

    async def bounded() -> Result:
        async with asyncio.timeout(4 * WAIT_S):
            return await story()

    return asyncio.run(bounded())


async def soon(awaitable: Awaitable[Result]) -> Result:
    """Wait for something that must happen."""
    async with asyncio.timeout(WAIT_S):
        return await awaitable


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something is true that nobody announces."""
    async with asyncio.timeout(WAIT_S):
        while not holds():  # noqa: ASYNC110 — what is waited for has no event of its own
            await asyncio.sleep(0.001)


def spec(name: str, *models: str, kind: ReplicaKind = ReplicaKind.GENERATIVE) -> ReplicaSpec:
    return ReplicaSpec(
        replica=ReplicaId(name),
        endpoint=Endpoint(url=f"http://{name}.invalid", api_key_env=f"{name.upper()}_KEY"),
        models=tuple(ModelName(model) for model in models or ("m",)),
        kind=kind,
    )


def offer(
    turn: str,
    *,
    run: str | None = None,
    echoes: tuple[str, ...] = (),
    parent: str | None = None,
    model: str = "m",
    principal: str = ANONYMOUS_PRINCIPAL,
    peer: str = "p",
    kind: ReplicaKind | None = ReplicaKind.GENERATIVE,
    age_s: float = 0.0,
) -> TurnOffer:
    return TurnOffer(
        turn=TurnId(turn),
        peer=PeerId(peer),
        model=ModelName(model),
        kind=kind,
        service_class=ServiceClass.INTERACTIVE,
        caller=CallerId(ANONYMOUS_CALLER),
        principal=PrincipalId(principal),
        keys=IdentityKeys(
            run=None if run is None else RunId(run),
            tool_calls=tuple(ToolCallId(call) for call in echoes),
            parent=None if parent is None else RunId(parent),
        ),
        age_s=age_s,
    )


def probed(
    name: str, running: int = 0, waiting: int | None = None, *, healthy: bool = True, cause: str = ""
) -> ReplicaProbed:
    load = None if waiting is None else Load(running=running, waiting=waiting)
    return ReplicaProbed(replica=ReplicaId(name), healthy=healthy, load=load, cause=cause)


def crowd(service: SchedulerService) -> None:
    """Put a turn of somebody else's on `a` and let its engine queue: it takes no more."""
    service.admit(offer("crowd", run="crowd", peer="crowd"))
    service.probed(probed("a", running=1, waiting=1))


def started(*replicas: ReplicaSpec, settings: SchedulerSettings | None = None) -> SchedulerService:
    """Start a service with these replicas, all healthy. Needs the running loop."""
    service = SchedulerService(settings or SchedulerSettings())
    service.start()
    for replica in replicas:
        service.add_replica(replica)
        service.probed(probed(replica.replica))
    return service
