"""Where and when something was measured, and what of."""

import datetime
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Final

import msgspec

import luftpause

UNKNOWN: Final = "unknown"
"""In place of a commit that nobody can tell any more."""

_COMPILE: Final = "scripts/compile"
_MEASURED: Final = (".", ":(exclude)benchmarks/results", ":(exclude)docs")
"""What a result is of: not the results before it, nor what is told of them."""


def root_of(package: Path) -> Path:
    """Return the checkout that runs, from its sources or its compiled copy; for an installed package its own folder."""
    return next((folder for folder in package.parents[1:3] if (folder / _COMPILE).is_file()), package)


PACKAGE: Final = Path(luftpause.__file__).resolve().parent
ROOT: Final = root_of(PACKAGE)
"""The checkout that runs; a folder of no meaning where the package was installed."""


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
    """Return the commit of what runs, `-dirty` if that was changed; outside a checkout the version.

    A compiled copy is of the commit that is checked out while it is of these very sources, else of the one that it was
    made of.
    """
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        return f"v{luftpause.__version__}"
    is_copy = PACKAGE.parent != ROOT / "src"
    if is_copy and subprocess.run(["/bin/sh", str(ROOT / _COMPILE), "--current"], check=False).returncode:
        made_of = PACKAGE.parent / "commit"
        return made_of.read_text(encoding="utf-8").strip() if made_of.exists() else UNKNOWN
    command = [git, "-C", str(ROOT), "describe", "--always", "--abbrev=10"]
    answer = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    changed = subprocess.run([git, "-C", str(ROOT), "diff", "--quiet", "HEAD", "--", *_MEASURED], check=False)
    return (answer.stdout.strip() or UNKNOWN) + "-dirty" * (changed.returncode == 1)


def now() -> str:
    """Return the time, UTC, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
