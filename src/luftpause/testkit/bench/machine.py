"""Where and when something was measured, and what of."""

import datetime
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Final

import msgspec

ROOT: Final = Path(__file__).resolve().parents[4]
"""The checkout that this file is in; some folder of no meaning where the package was installed."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run took place. `load_before` is the one-minute load average when it began."""

    system: str
    processor: str
    cores: int
    memory_gib: float
    python: str
    load_before: float


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def describe_machine() -> Machine:
    """Return what this machine is and how busy it is."""
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_gib=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        python=platform.python_version(),
        load_before=os.getloadavg()[0],
    )


def machine_line(machine: Machine) -> str:
    """Return it as a person reads it."""
    return (
        f"{machine.processor}, {machine.cores} cores, {machine.memory_gib:.0f} GiB, {machine.system}, "
        f"Python {machine.python}, load average {machine.load_before:.1f} before the run"
    )


def commit() -> str:
    """Return the commit that is checked out, `-dirty` if it was changed; `unknown` outside a checkout."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        return "unknown"
    command = [git, "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10"]
    answer = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    return answer.stdout.strip() or "unknown"


def now() -> str:
    """Return the time, UTC, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
