"""What memory this machine has, and what an engine takes of it: RAM from Linux, accelerators from NVML if there.

NVML is asked through the optional package `nvidia-ml-py`; without it, accelerators are known from the config alone.
An accelerator that is split (MIG) tells what all of its parts hold together, where we may know.
"""

import importlib
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Final

from luftpause.adapters import process_table
from luftpause.core.model.ids import DeviceId
from luftpause.core.model.models import RAM

_LOG: Final = logging.getLogger("luftpause.launcher")
_CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
_RAM_SHARE: Final = 0.9
"""Of the machine's memory; the rest is the system's and ours."""


def ram_budget(cgroup_limit: Path = _CGROUP_LIMIT) -> int:
    """Return what engines may have of this machine's RAM when nobody said how much, bytes."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        text = cgroup_limit.read_text(encoding="ascii").strip()
    except OSError:
        text = ""
    if text.isdigit():
        total = min(total, int(text))
    return int(total * _RAM_SHARE)


class MachineMemory:
    """See `MemoryMeter`. What cannot be measured is warned about, once: what the config says of it stands then.

    Args:
        accelerators: NVML's index by the name that the config gives a device; the first one is 0.
    """

    def __init__(self, accelerators: Mapping[DeviceId, int]) -> None:
        self._accelerators = accelerators
        self._warned: set[DeviceId] = set()
        self._nvml = self._begun() if accelerators else None
        if self._nvml is not None:
            for device in accelerators:
                self.free(device)  # so that one that is not there is told at the start

    def taken(self, pid: int, device: DeviceId) -> int:
        """Return what a process and all its children hold on a device, bytes; 0 where nobody can tell."""
        if device == RAM:
            return process_table.resident_bytes(pid)
        if self._nvml is None or device not in self._accelerators:
            return 0
        family = process_table.family_of(pid)
        held: dict[int, int] = {}
        try:
            handle = self._nvml.nvmlDeviceGetHandleByIndex(self._accelerators[device])
            # What computes with Vulkan is listed with those that draw; what does both, twice.
            computing = self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)
            for each in (*computing, *self._nvml.nvmlDeviceGetGraphicsRunningProcesses(handle)):
                if each.pid in family:
                    held[each.pid] = max(held.get(each.pid, 0), each.usedGpuMemory or 0)
        except self._nvml.NVMLError as error:
            self._warn(device, error)
            return 0
        return sum(held.values())

    def free(self, device: DeviceId) -> int | None:
        """Return what is free on an accelerator, bytes; None for RAM, which is back when its process is gone."""
        if self._nvml is None or device not in self._accelerators:
            return None
        try:
            handle = self._nvml.nvmlDeviceGetHandleByIndex(self._accelerators[device])
            free: int = self._nvml.nvmlDeviceGetMemoryInfo(handle).free
        except self._nvml.NVMLError as error:
            self._warn(device, error)
            return None
        return free

    def _begun(self) -> ModuleType | None:
        """Return the library, None where it is missing or finds no driver."""
        try:
            library = importlib.import_module("pynvml")
        except ImportError:
            self._warn_all("the package nvidia-ml-py is not installed")
            return None
        try:
            library.nvmlInit()
        except library.NVMLError as error:
            self._warn_all(error)
            return None
        return library

    def _warn_all(self, why: object) -> None:
        for device in self._accelerators:
            self._warn(device, why)

    def _warn(self, device: DeviceId, why: object) -> None:
        if device not in self._warned:
            self._warned.add(device)
            _LOG.warning("device_not_measured", extra={"device": device, "why": f"{why}; only estimates count there"})
