"""A run that must answer in a shape, and gets it wrong at first, is stopped dead at every point of its life.

However often that happens it is asked once to mend its answer, and ends with one that fits.
"""

from dataclasses import dataclass, replace

from crash.crashing_disk import Disk, MemoryFolder
from crash.dead_stop_loop import DeadStopLoop, live
from crash.three_runs import ME, ORDER, Outside, SlowTools, StoppedClock
from luftpause.adapters.journal_file.disk import Folder
from luftpause.adapters.journal_file.journal import FileJournal
from luftpause.core.model.ids import PrincipalId, RunId
from luftpause.core.runs.messages import AssistantMessage, UserMessage
from luftpause.core.runs.view import RunStatus, RunView
from luftpause.ports.turns import TurnReply, TurnRequest
from luftpause.services.runtime.service import RuntimeService

SHAPED = replace(ORDER, task="sum up", tools=(), output_schema={"type": "object"}, idempotency_key="the one")


@dataclass
class CarelessTurns:
    """A model that keeps to the shape only when it is told that it did not."""

    async def take(self, request: TurnRequest) -> TurnReply:
        told = [said.text for said in request.messages if isinstance(said, UserMessage)]
        assert len(told) <= 2, "it is asked once to mend its answer"
        text = '{"ok": true}' if "does not fit" in told[-1] else "ok"
        return TurnReply(message=AssistantMessage(text=text))

    async def end_run(self, principal: PrincipalId, run: RunId) -> None:
        return


async def answer(folder: Folder) -> RunView:
    """One life of the runtime, up to the end of the run."""
    service = RuntimeService(FileJournal(folder, StoppedClock()), CarelessTurns(), SlowTools(0.0, Outside()))
    await service.start()
    run = await service.spawn(SHAPED)
    assert await service.wait(ME, [run], "all", 60)
    (seen,) = service.look(ME, [run])
    assert len(service.glance(ME).chosen) == 1, "nothing was spawned twice"
    await service.close()
    return seen


def one_life(disk: Disk, stop_at: int | None = None, crash_at: int | None = None) -> tuple[int, Disk, RunView | None]:
    """Return how many steps the loop took, what the disk kept, and how the run ended if it did."""
    disk.crash_at = crash_at
    loop = DeadStopLoop(stop_at)
    seen = live(loop, answer(MemoryFolder(disk)))
    kept = disk.after_kill()
    loop.bury()
    return loop.steps, kept, seen


def test_an_answer_is_mended_once_wherever_the_runtime_is_stopped() -> None:
    disk = Disk()
    loop_steps, _, usual = one_life(disk)
    assert usual is not None
    assert (usual.structured, usual.own.turns) == ({"ok": True}, 2)
    disk_steps = len(disk.steps)
    assert (loop_steps, disk_steps) > (50, 10)
    points: list[dict[str, int]] = [{"stop_at": at} for at in range(loop_steps)]
    points += [{"crash_at": at} for at in range(disk_steps)]
    for point in points:
        _, kept, _ = one_life(Disk(), **point)
        _, _, seen = one_life(kept)
        assert seen is not None, point
        assert (seen.status, seen.structured, seen.own.turns) == (RunStatus.FINISHED, {"ok": True}, 2), point
