"""Which launcher is ordered and heard; `tests/contracts` has the rest."""

import asyncio
from dataclasses import replace

import pytest

from luftpause.core.model.ids import KvFile, LauncherId, ModelName, RunId
from luftpause.core.scheduling.residency.actions import DropKv, KvVerdict, UnloadModel
from luftpause.core.scheduling.residency.events import (
    LauncherJoined,
    LauncherLost,
    LoadAsked,
    ModelDown,
    ModelReport,
)
from luftpause.core.scheduling.residency.reasons import KvDropReason, KvReason, UnloadReason, UnloadWhy
from luftpause.ports.launcher import ModelOrder
from luftpause.ports.processes import LogSlice
from luftpause.services.scheduler.launchers import Launchers

M = ModelName("m")


class Seat:
    """A launcher that remembers its orders."""

    def __init__(self, name: str) -> None:
        self.stock = LauncherJoined(launcher=LauncherId(name), devices=(), catalogue=())
        self.orders: list[ModelOrder] = []

    def inventory(self) -> LauncherJoined:
        return self.stock

    def ordered(self, order: ModelOrder) -> None:
        self.orders.append(order)

    async def log(self, model: ModelName, after: int) -> LogSlice:
        return LogSlice(lines=(self.stock.launcher,), next=after)


def order(launcher: str) -> UnloadModel:
    why = UnloadWhy(reason=UnloadReason.IDLE)
    return UnloadModel(launcher=LauncherId(launcher), model=M, why=why, firmly=False)


def test_each_order_goes_to_its_launcher_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    events: list[ModelReport] = []
    launchers, one, two = Launchers(events.append), Seat("one"), Seat("two")
    for seat in (one, two):
        launchers.joined(seat, seat.stock)
    launchers.order(order("two"))
    launchers.order(order("three"))
    assert (one.orders, two.orders) == ([], [order("two")])
    assert "model_unload_ordered" in [record.message for record in caplog.records]
    assert asyncio.run(launchers.log(LauncherId("one"), M, 3)) == LogSlice(lines=("one",), next=3)


def test_what_becomes_of_kv_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    launchers, seat = Launchers(lambda event: None), Seat("one")
    launchers.joined(seat, seat.stock)
    kv = (KvVerdict(slot=0, run=RunId("r"), tokens=9, why=KvReason.NOT_WORTH),)
    drop = DropKv(launcher=LauncherId("one"), files=(KvFile(1),), why=KvDropReason.RUN_ENDED)
    for each in (replace(order("one"), kv=kv), drop):
        launchers.order(each)
    said = {record.message: vars(record) for record in caplog.records}
    assert said["model_unload_ordered"]["kv"] == ["r: it is computed again sooner than it is saved and restored"]
    assert said["kv_drop_ordered"]["why"] == "its run is over"
    assert seat.orders[-1] == drop


def test_a_launcher_that_left_is_neither_ordered_nor_heard() -> None:
    events: list[ModelReport] = []
    launchers, seat = Launchers(events.append), Seat("one")
    launchers.joined(seat, seat.stock)
    launchers.left(seat)
    launchers.left(seat)
    launchers.told(LauncherId("one"), ModelDown(model=M))
    launchers.order(order("one"))
    launchers.asked(LoadAsked(model=M))
    assert events == [seat.stock, LauncherLost(launcher=LauncherId("one")), LoadAsked(model=M)]
    assert seat.orders == []
