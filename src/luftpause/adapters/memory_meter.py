"""What memory this machine has, and what an engine takes of it: RAM from Linux, accelerators from NVML if there.

NVML is asked through the optional package `nvidia-ml-py`; without it, accelerators are known from the config alone.
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
    """See `MemoryMeter`.

    Args:
        accelerators: NVML's index by the name that the config gives a device; the first one is 0.
    """

    def __init__(self, accelerators: Mapping[DeviceId, int]) -> None:
        self._accelerators = accelerators
        self._nvml = _nvml() if accelerators else None

    def taken(self, pid: int, device: DeviceId) -> int:
        """Return what a process and all its children hold on a device, bytes; 0 where nobody can tell."""
        if device == RAM:
            return process_table.resident_bytes(pid)
        if self._nvml is None or device not in self._accelerators:
            return 0
        family = process_table.family_of(pid)
        try:
            handle = self._nvml.nvmlDeviceGetHandleByIndex(self._accelerators[device])
            running = self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        except self._nvml.NVMLError as error:
            _LOG.debug("nvml_failed", extra={"device": device, "error": str(error)})
            return 0
        return sum(each.usedGpuMemory or 0 for each in running if each.pid in family)

    def free(self, device: DeviceId) -> int | None:
        """Return what is free on an accelerator, bytes; None for RAM, which is back when its process is gone."""
        if self._nvml is None or device not in self._accelerators:
            return None
        try:
            handle = self._nvml.nvmlDeviceGetHandleByIndex(self._accelerators[device])
            free: int = self._nvml.nvmlDeviceGetMemoryInfo(handle).free
        except self._nvml.NVMLError:
            return None
        return free


def _nvml() -> ModuleType | None:
    try:
        library = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        _LOG.info("nvml_unusable", extra={"error": str(error)})
        return None
    return library
