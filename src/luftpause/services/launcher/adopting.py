"""Which engines that a launcher before us left behind are kept: the very ones that we would start now, all healthy.

Of a model with several engines all are kept or none, so that there are never more of them than declared.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from luftpause.ports.engines import Engines
from luftpause.ports.processes import LeftBehind
from luftpause.services.launcher.planning import EnginePlan, ModelPlan, launch_of
from luftpause.services.launcher.readiness import answers

_LOG = logging.getLogger("luftpause.launcher")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heirloom:
    """A model whose engines all run already, each with its plan."""

    model: ModelPlan
    engines: tuple[tuple[EnginePlan, LeftBehind], ...]


async def worth_keeping(
    models: Iterable[ModelPlan], left: Sequence[LeftBehind], engines: Engines
) -> tuple[Heirloom, ...]:
    """Return the models that are up as they are. What answers nothing takes as long as a health probe may."""
    by_name = {each.name: each for each in left}
    claimed = [found for model in models if (found := _same(model, by_name)) is not None]
    healthy = await asyncio.gather(*(_is_healthy(each, engines) for each in claimed))
    return tuple(each for each, is_healthy in zip(claimed, healthy, strict=True) if is_healthy)


def _same(model: ModelPlan, left: Mapping[str, LeftBehind]) -> Heirloom | None:
    found = [(plan, left[plan.replica]) for plan in model.engines if plan.replica in left]
    if not found:
        return None
    is_whole = len(found) == len(model.engines)
    if is_whole and all(behind.port and behind.is_of(launch_of(plan, behind.port)) for plan, behind in found):
        return Heirloom(model=model, engines=tuple(found))
    _LOG.info("orphan_unlike_plan", extra={"model": model.spec.model})
    return None


async def _is_healthy(heirloom: Heirloom, engines: Engines) -> bool:
    return all([await _is_ready(plan, behind, engines) for plan, behind in heirloom.engines])


async def _is_ready(plan: EnginePlan, behind: LeftBehind, engines: Engines) -> bool:
    if not await answers(engines, plan.endpoint_at(behind.port), plan.health):
        _LOG.info("orphan_unhealthy", extra={"engine": plan.replica})
        return False
    # What a command of its own stops need not be who listens, as when it is started: a container for one.
    return bool(plan.stop_argv) or await asyncio.to_thread(behind.listens) is not False
