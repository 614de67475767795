"""What memory there is, and what an engine takes of it."""

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from luftpause.adapters.memory_meter import MachineMemory, ram_budget
from luftpause.core.model.ids import DeviceId
from luftpause.core.model.models import RAM

GPU = DeviceId("gpu0")


class NvmlError(Exception):
    """As the library's."""


def library(*, works: bool = True) -> ModuleType:
    """An NVML with one device, on which this process takes 300 bytes and a stranger 700."""

    def check() -> None:
        if not works:
            raise NvmlError("no driver")

    def processes(handle: int) -> list[SimpleNamespace]:
        assert handle == 1
        pids = {os.getpid(): 300, 2**22 + 1: 700}
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in pids.items()]

    module = ModuleType("pynvml")
    functions = {
        "NVMLError": NvmlError,
        "nvmlInit": check,
        "nvmlDeviceGetHandleByIndex": lambda index: index + 1,
        "nvmlDeviceGetComputeRunningProcesses": processes,
        "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(free=4000),
    }
    for name, value in functions.items():
        setattr(module, name, value)
    return module


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
def test_an_accelerators_memory_is_asked_of_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", library())
    meter = MachineMemory({GPU: 0})
    assert meter.taken(os.getpid(), GPU) == 300
    assert meter.free(GPU) == 4000
    assert meter.taken(os.getpid(), DeviceId("other")) == 0


def test_without_the_library_or_its_driver_nobody_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", library(works=False))
    assert MachineMemory({GPU: 0}).free(GPU) is None
    monkeypatch.setitem(sys.modules, "pynvml", None)
    meter = MachineMemory({GPU: 0})
    assert (meter.taken(1, GPU), meter.free(GPU)) == (0, None)
