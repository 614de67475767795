"""The launchers that are connected: each gets its orders, and only one that has joined is heard.

What is ordered, and what a report means, is decided in `core/scheduling/residency`.
"""

import logging
from collections.abc import Callable
from typing import assert_never

from luftpause.core.model.ids import LauncherId, ModelName
from luftpause.core.scheduling.residency.actions import DropKv, LoadModel, UnloadModel
from luftpause.core.scheduling.residency.events import (
    LauncherJoined,
    LauncherLost,
    LoadAsked,
    ModelReport,
    PinAsked,
    UnloadAsked,
)
from luftpause.core.scheduling.residency.reasons import explain_unload
from luftpause.ports.launcher import LauncherReport, LauncherSeat, ModelOrder
from luftpause.ports.processes import LogSlice

_LOG = logging.getLogger("luftpause.scheduler")


class Launchers:
    """A `LauncherDesk`.

    Args:
        submit: takes an event in.
    """

    def __init__(self, submit: Callable[[ModelReport], None]) -> None:
        self._submit = submit
        self._seats: dict[LauncherId, LauncherSeat] = {}

    def joined(self, seat: LauncherSeat, inventory: LauncherJoined) -> None:
        """See `LauncherDesk`."""
        if self._seats.get(inventory.launcher) is not seat:
            models = len(inventory.catalogue)
            _LOG.info("launcher_joined", extra={"launcher": inventory.launcher, "models": models})
        self._seats[inventory.launcher] = seat
        self._submit(inventory)

    def told(self, launcher: LauncherId, report: LauncherReport) -> None:
        """See `LauncherDesk`."""
        if launcher in self._seats:
            self._submit(report)

    def left(self, seat: LauncherSeat) -> None:
        """See `LauncherDesk`."""
        for launcher, known in tuple(self._seats.items()):
            if known is seat:
                del self._seats[launcher]
                _LOG.warning("launcher_lost", extra={"launcher": launcher})
                self._submit(LauncherLost(launcher=launcher))

    def order(self, order: ModelOrder) -> None:
        """Give an order to its launcher; one that is away is told nothing, its inventory will show what it did."""
        match order:
            case LoadModel(model=model, why=why):
                _LOG.info("model_load_ordered", extra={"model": model, "why": why.value})
            case UnloadModel(model=model, why=why_unloaded, kv=kv):
                kept = [f"{each.run}: {each.why.value}" for each in kv]
                _LOG.info(
                    "model_unload_ordered", extra={"model": model, "why": explain_unload(why_unloaded), "kv": kept}
                )
            case DropKv(files=files, why=dropped):
                _LOG.info("kv_drop_ordered", extra={"files": len(files), "why": dropped.value})
            case _:
                assert_never(order)
        seat = self._seats.get(order.launcher)
        if seat is not None:
            seat.ordered(order)

    def asked(self, wish: LoadAsked | UnloadAsked | PinAsked) -> None:
        """An operator wants something of a model."""
        self._submit(wish)

    async def log(self, launcher: LauncherId, model: ModelName, after: int) -> LogSlice:
        """Return what a model's engines wrote from a line on; nothing where the launcher is away."""
        seat = self._seats.get(launcher)
        return LogSlice(lines=(), next=after) if seat is None else await seat.log(model, after)
