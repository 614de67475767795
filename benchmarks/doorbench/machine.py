"""Where and when a benchmark ran, and what of."""

import datetime
import os
import platform
import subprocess
from pathlib import Path

from benchmarks.doorbench.peers import ROOT
from benchmarks.doorbench.results import Machine


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


def commit() -> str:
    """Return the commit that is checked out, `-dirty` if it was changed."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10"]
    answer = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    return answer.stdout.strip() or "unknown"


def now() -> str:
    """Return the time, UTC, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
