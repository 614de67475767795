"""A runtime and its client in a process of their own, to be killed by whoever started it.

    living_runtime.py FOLDER PAUSE_S

They live one life of `three_runs` on FOLDER and print how the runs ended. Whatever reaches the world outside goes line
by line into FOLDER/outside, from which the next life learns it, and onto standard output, so that the killer can count.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from crash.three_runs import Outside, live_once
from luftpause.adapters.journal_file.disk import DiskFolder
from luftpause.core.model.ids import RunId, ToolCallId


class LoggedOutside(Outside):
    """The world outside, as a file that only grows."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for line in lines:
            self._take(json.loads(line))
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def acted(self, tool: str, key: str) -> None:
        self._tell("acted", tool, key)

    def answered(self, task: str, run: RunId) -> None:
        if task not in self.handles:
            self._tell("answered", task, run)

    def was_allowed(self, run: RunId, call: ToolCallId) -> None:
        self._tell("allowed", run, call)

    def was_sent(self) -> None:
        self._tell("sent")

    def _tell(self, *what: str) -> None:
        line = json.dumps(what) + "\n"
        os.write(self._file, line.encode())
        self._take(what)
        sys.stdout.write(line)
        sys.stdout.flush()

    def _take(self, what: "list[str] | tuple[str, ...]") -> None:
        match what:
            case ["acted", tool, key]:
                super().acted(tool, key)
            case ["answered", task, run]:
                super().answered(task, RunId(run))
            case ["allowed", run, call]:
                super().was_allowed(RunId(run), ToolCallId(call))
            case ["sent"]:
                super().was_sent()
            case _:
                raise AssertionError(what)


async def main(folder: Path, pause_s: float) -> None:
    seen = await live_once(DiskFolder(folder / "state"), LoggedOutside(folder / "outside"), pause_s)
    ends = {task: {"result": run.result, "status": run.status.value} for task, run in seen.items()}
    sys.stdout.write(json.dumps({"ends": ends}) + "\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2])))
