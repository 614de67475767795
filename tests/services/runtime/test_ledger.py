import asyncio

import pytest

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, ModelName, RunId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.runs.condensing import Outcome
from luftpause.core.runs.events import MessageSent, RunFinished, RunSpawned, TurnTaken
from luftpause.core.runs.messages import AssistantMessage
from luftpause.ports.journal import StaleAppendError
from luftpause.services.runtime.ledger import Ledger
from luftpause.services.runtime.metrics import RuntimeMetrics
from luftpause.services.runtime.orders import UnknownHandleError
from luftpause.telemetry.pauses import DECISIONS_A_LOOK
from services.collected import collections
from services.runtime.runtime_fakes import MemoryJournal, in_time, order

R, Q = RunId("run_r"), RunId("run_q")


def spawned(run: RunId) -> RunSpawned:
    asked = order()
    return RunSpawned(
        run=run,
        task=asked.task,
        model=ModelName("m"),
        service_class=ServiceClass.INTERACTIVE,
        caller=asked.caller,
        principal=asked.principal,
        system="be brief",
    )


async def lived(ledger: Ledger, run: RunId) -> None:
    await ledger.keep(run, run, [spawned(run)])
    await ledger.keep(run, run, [TurnTaken(run=run, message=AssistantMessage(text="42"))])
    await ledger.keep(run, run, [RunFinished(run=run, result="42")])


def test_a_run_that_is_over_is_settled_and_only_then() -> None:
    async def live() -> None:
        journal = MemoryJournal()
        ledger = Ledger(journal, RuntimeMetrics(), lambda _run: None)
        await ledger.open()
        await ledger.keep(R, R, [spawned(R)])
        assert journal.settled == {}
        await ledger.keep(R, R, [RunFinished(run=R, result="42")])
        assert (journal.settled[R].outcome, journal.settled[R].text) == (Outcome.FINISHED, "42")
        later = MemoryJournal(journal.kept)
        await Ledger(later, RuntimeMetrics(), lambda _run: None).open()
        assert later.settled == journal.settled, "what an earlier runtime did not put away is put away now"

    in_time(live())


def test_a_run_that_the_journal_forgets_is_nobodys_any_more() -> None:
    async def live() -> None:
        journal = MemoryJournal()
        ledger = Ledger(journal, RuntimeMetrics(), lambda _run: None)
        await ledger.open()
        await lived(ledger, R)
        journal.to_forget = (R,)
        await lived(ledger, Q)
        with pytest.raises(UnknownHandleError):
            ledger.find(ANONYMOUS_PRINCIPAL, R)
        for principal in (ANONYMOUS_PRINCIPAL, None):
            assert ledger.newest(principal, 10, first=[R]) == ((Q,), 0)
        del journal.kept[R]
        await lived(ledger, R)
        assert ledger.find(ANONYMOUS_PRINCIPAL, R).own.turns == 1

    in_time(live())


def test_a_run_that_goes_on_gets_back_what_it_was_given_and_what_was_said() -> None:
    async def live() -> None:
        ledger = Ledger(MemoryJournal(), RuntimeMetrics(), lambda _run: None)
        await ledger.open()
        await lived(ledger, R)
        assert (ledger.state.runs[R].messages, ledger.state.runs[R].spawn.system) == ((), None)
        await ledger.recall(R)
        assert ledger.state.runs[R].spawn == spawned(R)
        kept = await ledger.keep(R, R, [MessageSent(run=R, text="more")])
        assert kept.effective == (True,)
        assert len(ledger.state.runs[R].messages) == 4

    in_time(live())


def test_a_run_that_is_forgotten_while_it_is_read_back_takes_nothing() -> None:
    async def live() -> None:
        journal = MemoryJournal()
        ledger = Ledger(journal, RuntimeMetrics(), lambda _run: None)
        await ledger.open()
        await lived(ledger, R)
        recalled = asyncio.ensure_future(ledger.recall(R))
        await asyncio.sleep(0)
        assert journal.read_back == [R]
        journal.to_forget = (R,)
        ledger._settle(R)
        with pytest.raises(StaleAppendError, match="is not kept any more"):
            await recalled

    in_time(live())


def test_what_events_leave_behind_is_looked_through_by_their_number() -> None:
    async def live() -> None:
        ledger = Ledger(MemoryJournal(), RuntimeMetrics(), lambda _run: None)
        await ledger.open()
        with collections() as seen:
            for number in range(DECISIONS_A_LOOK):
                await lived(ledger, RunId(f"run_{number}"))
        assert seen == [1, 1, 1]

    in_time(live())
