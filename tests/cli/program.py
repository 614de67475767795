"""The real `luftpause` program as a child process, with bounded waits."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

WAIT_S = 50


def command_line(*arguments: str) -> list[str]:
    """Return the argument vector that starts luftpause under this Python."""
    return [sys.executable, "-m", "luftpause", *arguments]


def run(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run luftpause to its end in an empty environment of its own."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LUFTPAUSE_")}
    return subprocess.run(
        command_line(*arguments),
        cwd=cwd,
        env={**clean, **(env or {})},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
