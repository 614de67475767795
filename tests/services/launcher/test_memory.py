"""Waiting for an accelerator's memory."""

import asyncio

import pytest

from luftpause.core.model.ids import DeviceId
from luftpause.services.launcher.memory import memory_back

GPU = DeviceId("gpu")
WAIT_S = 20.0


class Meter:
    """Tells the figures in order, then the last one for ever."""

    def __init__(self, *free: int | None) -> None:
        self.free_figures = list(free)
        self.looks = 0

    def taken(self, pid: int, device: DeviceId) -> int:
        return 0

    def free(self, device: DeviceId) -> int | None:
        self.looks += 1
        return self.free_figures.pop(0) if len(self.free_figures) > 1 else self.free_figures[0]


def test_it_returns_as_soon_as_most_of_it_is_back() -> None:
    meter = Meter(100, 150, 185, 200)
    asyncio.run(memory_back(meter, GPU, 100, before=100, wait_s=WAIT_S))
    assert meter.looks == 3


def test_it_waits_for_nothing_where_nobody_can_tell() -> None:
    meter = Meter(0)
    asyncio.run(memory_back(meter, GPU, 100, before=None, wait_s=WAIT_S))
    asyncio.run(memory_back(meter, GPU, 0, before=0, wait_s=WAIT_S))
    assert meter.looks == 0
    asyncio.run(memory_back(Meter(None), GPU, 100, before=0, wait_s=WAIT_S))


def test_it_gives_up_at_last_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(memory_back(Meter(0), GPU, 100, before=0, wait_s=0.05))
    assert [record.message for record in caplog.records] == ["memory_not_back"]
