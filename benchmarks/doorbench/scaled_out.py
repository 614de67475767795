"""The scheduler and the LLM door as processes of their own, below this one, so that their CPU is one tree's.

`python -m benchmarks.doorbench.scaled_out CONFIG READY_FILE LUFTPAUSE...`. It does nothing itself until it is ended.
"""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from luftpause.testkit.bench.over_http.children import wait_until

_START_S = 30.0
_END_S = 6.0


def serve(config: str, ready_file: str, *luftpause: str) -> int:
    """Run both until the door ends or we are asked to; return the door's exit code."""
    scheduler_ready = Path(f"{ready_file}.scheduler")
    children: list[subprocess.Popen[bytes]] = []
    try:
        for service, ready in (("scheduler", scheduler_ready), ("dataplane", Path(ready_file))):
            children.append(subprocess.Popen([*luftpause, service, "--config", config, "--ready-file", str(ready)]))
            wait_until(ready.exists, timeout_s=_START_S, what=service)
        return children[-1].wait()
    finally:
        for child in reversed(children):
            child.terminate()
            child.wait(_END_S)


def main(arguments: Sequence[str]) -> int:
    """Read the command line and serve; SIGTERM ends the children as well."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    return serve(*arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
