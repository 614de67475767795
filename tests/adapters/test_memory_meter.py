"""What memory there is, and what an engine takes of it."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from luftpause.adapters.memory_meter import MachineMemory, ram_budget
from luftpause.core.model.ids import DeviceId
from luftpause.core.model.models import RAM

GPU = DeviceId("gpu0")


class NVMLError(Exception):
    """As the package's: one class for all, whose text is the driver's."""


@dataclass
class Nvml:
    """A package `pynvml` with two devices: each function that is named in `fails` raises its text."""

    computing: Sequence[SimpleNamespace] = ()
    drawing: Sequence[SimpleNamespace] = ()
    fails: dict[str, str] = field(default_factory=dict)

    def module(self) -> ModuleType:
        module = ModuleType("pynvml")
        answers: dict[str, Callable[[int], object]] = {
            "nvmlDeviceGetComputeRunningProcesses": lambda _: list(self.computing),
            "nvmlDeviceGetGraphicsRunningProcesses": lambda _: list(self.drawing),
            "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(total=9000, free=4000, used=5000),
        }
        for name, answer in answers.items():
            setattr(module, name, partial(self.ask, name, answer))
        for name, value in (
            ("NVMLError", NVMLError),
            ("nvmlInit", partial(self.ask, "nvmlInit", lambda _: None, 0)),
            ("nvmlDeviceGetHandleByIndex", self.handle),
        ):
            setattr(module, name, value)
        return module

    def ask(self, name: str, answer: Callable[[int], object], handle: int) -> object:
        if name in self.fails:
            raise NVMLError(self.fails[name])
        return answer(handle)

    def handle(self, index: int) -> int:
        if index > 1:
            raise NVMLError("Invalid Argument")
        return index


def row(pid: int, used: int | None) -> SimpleNamespace:
    """A process as NVML lists it; None: the driver does not say what it holds."""
    no_instance = 0xFFFFFFFF
    return SimpleNamespace(pid=pid, usedGpuMemory=used, gpuInstanceId=no_instance, computeInstanceId=no_instance)


OWN, STRANGER = os.getpid(), 2**22 + 1


def test_a_share_of_the_machine_or_of_its_limit_is_for_engines(tmp_path: Path) -> None:
    whole = ram_budget(tmp_path / "none")
    assert whole > 0
    limit = tmp_path / "memory.max"
    limit.write_text("1000\n")
    assert ram_budget(limit) == 900
    limit.write_text("max\n")
    assert ram_budget(limit) == whole


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_what_this_process_holds_is_seen() -> None:
    meter = MachineMemory({})
    assert meter.taken(os.getpid(), RAM) > 2**20
    assert meter.free(RAM) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_an_accelerators_memory_is_asked_of_its_driver(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    nvml = Nvml(computing=[row(OWN, 300), row(STRANGER, 700)])
    monkeypatch.setitem(sys.modules, "pynvml", nvml.module())
    meter = MachineMemory({GPU: 0})
    assert meter.taken(OWN, GPU) == 300
    assert meter.free(GPU) == 4000
    assert meter.taken(OWN, DeviceId("other")) == 0
    nvml.drawing = [row(OWN, 350), row(STRANGER, 10)]
    assert meter.taken(OWN, GPU) == 350, "computes and draws, and is listed twice"
    nvml.computing, nvml.drawing = [row(OWN, None)], []
    assert meter.taken(OWN, GPU) == 0, "nobody can tell"
    assert caplog.records == []


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    assert {record.message for record in caplog.records} <= {"device_not_measured"}
    return [(str(vars(record)["device"]), str(vars(record)["why"])) for record in caplog.records]


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (None, "the package nvidia-ml-py is not installed"),
        (Nvml(fails={"nvmlInit": "NVML Shared Library Not Found"}).module(), "NVML Shared Library Not Found"),
        (Nvml(fails={"nvmlInit": "Driver Not Loaded"}).module(), "Driver Not Loaded"),
    ],
)
def test_without_the_library_or_its_driver_only_ram_is_measured_and_each_device_is_warned_about_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, module: ModuleType | None, why: str
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", module)
    meter = MachineMemory({GPU: 0, DeviceId("gpu1"): 1})
    assert (meter.taken(OWN, GPU), meter.free(GPU)) == (0, None)
    assert told(caplog) == [(name, f"{why}; only estimates count there") for name in ("gpu0", "gpu1")]
    MachineMemory({})
    assert len(caplog.records) == 2, "who declares no device needs no driver"


def test_a_device_that_is_not_there_is_told_at_the_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Nvml().module())
    meter = MachineMemory({GPU: 0, DeviceId("gpu7"): 7})
    assert told(caplog) == [("gpu7", "Invalid Argument; only estimates count there")]
    assert (meter.taken(OWN, DeviceId("gpu7")), meter.free(DeviceId("gpu7"))) == (0, None)
    assert meter.free(GPU) == 4000
    assert len(caplog.records) == 1


def test_what_a_split_device_tells_nobody_but_root_is_warned_about_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With MIG on, figures of the whole device are for those with the right to see all of its parts."""
    hidden = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetMemoryInfo")
    nvml = Nvml(fails=dict.fromkeys(hidden, "Insufficient Permissions"))
    monkeypatch.setitem(sys.modules, "pynvml", nvml.module())
    meter = MachineMemory({GPU: 0})
    assert (meter.taken(OWN, GPU), meter.free(GPU)) == (0, None)
    assert told(caplog) == [("gpu0", "Insufficient Permissions; only estimates count there")]
