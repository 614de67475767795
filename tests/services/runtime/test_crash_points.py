"""A scripted tree is cut off at every record that it writes, before and after, and must come to the same end.

The tree: a parent that calls a tool twice, of which a person must allow each call; a run that comes after it and must
answer in a shape, which it gets wrong at first; a message that makes the parent go on after it finished.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence

import pytest

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, RunId
from luftpause.core.runs.events import ApprovalDecided, Event, Limits, MessageSent, TurnTaken
from luftpause.core.runs.invariants import check
from luftpause.core.runs.replay import Entry, History, replay
from luftpause.core.runs.view import RunStatus
from luftpause.ports.tools import ToolOutcome
from luftpause.ports.turns import TurnReply, TurnRequest
from luftpause.services.runtime.orders import NotKeptError, SpawnRefusedError
from services.runtime.runtime_fakes import (
    FakeTools,
    MemoryJournal,
    World,
    answers_of,
    calls,
    in_time,
    order,
    runtime,
    text,
)

ME = ANONYMOUS_PRINCIPAL
RECORDS = 30
"""More than the tree writes in one go, so that the last points lie behind its end."""

EVERY = [(number, after) for number in range(1, RECORDS + 1) for after in (False, True)]
USUAL = set(random.Random(5).sample(EVERY, 24))
POINTS = [point if point in USUAL else pytest.param(point, marks=pytest.mark.nightly) for point in EVERY]


class MortalJournal(MemoryJournal):
    """Takes so many batches and no more: the next one is lost on its way to the disk, or on its way back."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.left = 10**9
        self.forgets_to_answer = False
        self.dead = asyncio.Event()

    async def append(self, tree: RunId, run: RunId, expected_seq: int, epoch: int, entries: Sequence[Entry]) -> int:
        self.left -= 1
        if self.left < 0 or (self.left == 0 and not self.forgets_to_answer):
            self.dead.set()
            await asyncio.Event().wait()
        seq = await super().append(tree, run, expected_seq, epoch, entries)
        if self.left == 0:
            self.dead.set()
            await asyncio.Event().wait()
        return seq


async def say(request: TurnRequest) -> TurnReply:
    said = request.messages[-1].text
    if request.messages[0].text == "write":
        heard = answers_of(request)
        if len(heard) < 2:
            return calls(("write", '{"at":"1"}'), ("write", '{"at":"2"}'))
        return text("thanks") if said == "well done" else text(" / ".join(heard))
    return text('{"ok": true}' if "does not fit" in said else "ok")


class Person:
    """Wants it all done, asks again for what it got no answer to, and allows whatever it is asked about."""

    def __init__(self) -> None:
        self.allowed: list[tuple[RunId, str]] = []
        self.sent = False

    async def see_it_done(self, world: World) -> tuple[RunId, RunId]:
        service = world.service
        first = await service.spawn(
            order("write", idempotency_key="first", tools=("write",), budget=Limits(tokens=999))
        )
        then = order("sum up", idempotency_key="then", after=(first,), tools=(), output_schema={"type": "object"})
        second = await service.spawn(then)
        while not await service.wait(ME, [first, second], "all", 20, or_approval=True):
            await self.allow(world, [first, second])
        if not self.has_sent(world, first):
            await service.send(ME, first, "well done")
        while not await service.wait(ME, [first, second], "all", 20, or_approval=True):
            await self.allow(world, [first, second])
        return first, second

    def has_sent(self, world: World, run: RunId) -> bool:
        return any(isinstance(entry.event, MessageSent) for entry in world.journal.kept[run])

    async def allow(self, world: World, runs: Sequence[RunId]) -> None:
        for run in world.service.look(ME, runs):
            for pending in run.pending_approvals:
                await world.service.approvals.approve(ME, run.run, pending.call, allow=True, by="me")
                self.allowed.append((run.run, pending.call))


async def until_it_dies(world: World, person: Person, journal: MortalJournal) -> None:
    doing = asyncio.ensure_future(person.see_it_done(world))
    dying = asyncio.ensure_future(journal.dead.wait())
    await asyncio.wait([doing, dying], return_when=asyncio.FIRST_COMPLETED)
    await world.service.close()
    for task in (doing, dying):
        task.cancel()
    ends = await asyncio.gather(doing, dying, return_exceptions=True)
    refusals = (SpawnRefusedError, NotKeptError, asyncio.CancelledError)
    assert all(not isinstance(end, BaseException) or isinstance(end, refusals) for end in ends), ends


@pytest.mark.parametrize("point", POINTS)
def test_a_tree_that_is_cut_off_anywhere_comes_to_the_same_end(point: tuple[int, bool]) -> None:
    async def live() -> None:
        effects: list[str] = []

        async def write(arguments: Mapping[str, object]) -> ToolOutcome:
            effects.append(str(arguments["at"]))
            return ToolOutcome(text=f"wrote {arguments['at']}")

        tools = FakeTools({"write": write}, unsafe=frozenset({"write"}), destructive=frozenset({"write"}))
        journal, person = MortalJournal(), Person()
        journal.left, journal.forgets_to_answer = point
        async with runtime(say, journal=journal, tools=tools) as world:
            await until_it_dies(world, person, journal)
        again = MemoryJournal(kept=journal.kept, epoch=journal.epoch)
        async with runtime(say, journal=again, tools=tools) as world:
            first, second = await person.see_it_done(world)
            for run in world.service.look(ME, [first, second]):
                assert run.status is RunStatus.FINISHED, run.error
            assert world.service.look(ME, [first])[0].result == "thanks"
            assert world.service.look(ME, [second])[0].structured == {"ok": True}
            assert len(world.service.look_at_all().runs) == 2, "nothing was spawned twice"
            kept = {run: [entry.event for entry in entries] for run, entries in again.kept.items()}
            assert sorted(effects) == sorted(set(effects)), "an unsafe call was made twice"
            assert all(each.startswith("wrote") or "unknown" in each for each in heard(kept[first]))
            decisions = [event.call for event in kept[first] if isinstance(event, ApprovalDecided)]
            assert len(decisions) == len(set(decisions)), "what was answered was asked again"
            state = replay(History(run=run, entries=tuple(entries)) for run, entries in again.kept.items())
            check(state)
            assert not state.running
            assert not state.waiting

    in_time(live())


def heard(events: Sequence[Event]) -> list[str]:
    """What the model heard of its calls, as it repeats it."""
    answers = [event for event in events if isinstance(event, TurnTaken) and not event.message.tool_calls]
    return answers[0].message.text.split(" / ")
