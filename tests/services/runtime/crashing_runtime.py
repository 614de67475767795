"""A runtime in a process of its own that kills itself with SIGKILL where it is told to.

    crashing_runtime.py FOLDER CRASH_AT

CRASH_AT is `never`, `before:N` or `after:N` (the N-th append to the journal) or `tool:N` (inside the N-th tool call,
after its effect). The process spawns one run unless the journal has one, waits for it, prints its state and ends.
The model asks `look` and `write` in one reply, then `write` alone, then answers with all it heard.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from luftpause.adapters.journal_file.journal import FileJournal
from luftpause.core.model.ids import ANONYMOUS_CALLER, ANONYMOUS_PRINCIPAL, ModelName, PrincipalId, RunId, ToolCallId
from luftpause.core.runs.messages import AssistantMessage, ToolCall, ToolMessage
from luftpause.core.runs.replay import Entry, History
from luftpause.core.runs.tools import ToolHints, ToolSpec
from luftpause.ports.journal import Loaded
from luftpause.ports.tools import ToolOutcome
from luftpause.ports.turns import TurnReply, TurnRequest
from luftpause.services.runtime.orders import SpawnOrder
from luftpause.services.runtime.service import RuntimeService


class CrashPoint:
    """Counts, and kills the process at the one place that it was given."""

    def __init__(self, where: str) -> None:
        self._kind, _, number = where.partition(":")
        self._number = int(number or 0)
        self._seen: dict[str, int] = {}

    def pass_by(self, kind: str) -> None:
        self._seen[kind] = self._seen.get(kind, 0) + 1
        if kind == self._kind and self._seen[kind] == self._number:
            os.kill(os.getpid(), signal.SIGKILL)


class CrashingJournal:
    """The real journal, with a crash point on either side of every append."""

    def __init__(self, journal: FileJournal, crash: CrashPoint) -> None:
        self._journal = journal
        self._crash = crash

    async def load(self) -> Loaded:
        return await self._journal.load()

    async def append(self, tree: RunId, run: RunId, expected_seq: int, epoch: int, entries: Sequence[Entry]) -> int:
        self._crash.pass_by("before")
        seq = await self._journal.append(tree, run, expected_seq, epoch, entries)
        self._crash.pass_by("after")
        return seq

    async def history(self, run: RunId) -> History:
        return await self._journal.history(run)

    async def close(self) -> None:
        await self._journal.close()


class LoggedTools:
    """`look` is read-only, `write` is not; every call leaves a line."""

    def __init__(self, log: Path, crash: CrashPoint) -> None:
        self._log = log
        self._crash = crash

    async def catalogue(self, _wanted: Sequence[str] | None = None) -> Sequence[ToolSpec]:
        return [
            ToolSpec(
                name=name,
                server="log",
                tool=name,
                description="",
                schema={"type": "object"},
                hints=ToolHints(read_only=name == "look"),
            )
            for name in ("look", "write")
        ]

    async def call(self, tool: ToolSpec, arguments: Mapping[str, object], key: str) -> ToolOutcome:
        with self._log.open("a", encoding="utf-8") as file:
            file.write(f"{tool.name} {key}\n")
        self._crash.pass_by("tool")
        return ToolOutcome(text=f"{tool.name} done")


class ScriptedTurns:
    """The model."""

    async def take(self, request: TurnRequest) -> TurnReply:
        heard = [message.text for message in request.messages if isinstance(message, ToolMessage)]
        asked = {0: ("look", "write"), 2: ("write",)}.get(len(heard), ())
        calls = tuple(
            ToolCall(call=ToolCallId(f"c{len(heard)}{place}"), tool=name, arguments="{}")
            for place, name in enumerate(asked)
        )
        return TurnReply(message=AssistantMessage(text="" if asked else " / ".join(heard), tool_calls=calls))

    async def end_run(self, principal: PrincipalId, run: RunId) -> None:
        return


class StoppedClock:
    """Always the same moment."""

    def utc(self) -> float:
        return 1_795_000_000.0


async def main(folder: Path, where: str) -> None:
    crash = CrashPoint(where)
    journal = CrashingJournal(FileJournal(folder, StoppedClock()), crash)
    service = RuntimeService(journal, ScriptedTurns(), LoggedTools(folder / "log", crash))
    await service.start()
    known = service.look_at_all().runs
    if known:
        run = known[0].spawn.run
    else:
        run = await service.spawn(
            SpawnOrder(
                task="crash", principal=ANONYMOUS_PRINCIPAL, caller=ANONYMOUS_CALLER, model=ModelName("scripted")
            )
        )
    await service.wait(ANONYMOUS_PRINCIPAL, [run], "all", 20)
    (seen,) = service.look(ANONYMOUS_PRINCIPAL, [run])
    sys.stdout.write(
        json.dumps({"runs": len(service.look_at_all().runs), "status": seen.status.value, "result": seen.result})
    )
    await service.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
