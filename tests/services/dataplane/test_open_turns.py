import asyncio
from functools import partial

from adapters.engine_http.scripted_engine import eventually, run_bounded
from luftpause.core.model.ids import PeerId, ToolCallId
from luftpause.core.scheduling.events import (
    FirstTokenSeen,
    TurnAbandoned,
    TurnFailed,
    TurnFinished,
    TurnsRenewed,
    TurnStays,
)
from luftpause.services.dataplane.open_turns import CALLS_KEPT, OpenTurns
from services.dataplane.door import PlayedScheduler


def test_turn_ids_are_the_peer_and_a_counter() -> None:
    turns = OpenTurns(PlayedScheduler(), peer=PeerId("dp_x"))

    assert [turns.open(), turns.open()] == ["dp_x.1", "dp_x.2"]
    assert turns.turns == ("dp_x.1", "dp_x.2")


def test_only_the_first_end_of_a_turn_counts() -> None:
    scheduler = PlayedScheduler()
    turns = OpenTurns(scheduler, peer=PeerId("dp_x"))
    refused, failed = turns.open(), turns.open()

    turns.tell(FirstTokenSeen(turn=failed))
    turns.end(refused, None)
    turns.end(refused, TurnAbandoned(turn=refused))
    turns.end(failed, TurnFailed(turn=failed, cause="x"))
    turns.end(failed, TurnAbandoned(turn=failed))

    assert scheduler.reports == [FirstTokenSeen(turn=failed), TurnFailed(turn=failed, cause="x")]
    assert len(turns) == 0


def test_the_last_ids_that_clients_were_given_are_known() -> None:
    turns = OpenTurns(PlayedScheduler(), peer=PeerId("dp_x"))

    def end(*calls: str) -> None:
        turn = turns.open()
        turns.end(turn, TurnFinished(turn=turn, finish="tool_calls", tool_calls=tuple(map(ToolCallId, calls))))

    end("first", "second")
    end()
    assert turns.gave([ToolCallId("own"), ToolCallId("second")])
    assert not turns.gave([ToolCallId("own")])
    assert not turns.gave([])
    end(*(f"call_{number}" for number in range(CALLS_KEPT - 1)))
    assert not turns.gave([ToolCallId("first")])
    assert turns.gave([ToolCallId("second")])


def test_open_turns_are_renewed_until_they_end() -> None:
    async def main() -> None:
        scheduler = PlayedScheduler()
        turns = OpenTurns(scheduler, peer=PeerId("dp_x"))
        renewal = asyncio.create_task(turns.renew(0.001))
        for _ in range(5):
            await asyncio.sleep(0.002)
            assert scheduler.reports == []
        first, second = turns.open(), turns.open()
        await eventually(lambda: TurnsRenewed(turns=(first, second)) in scheduler.reports)
        turns.end(first, None)
        await eventually(lambda: TurnsRenewed(turns=(second,)) in scheduler.reports)
        renewal.cancel()
        await asyncio.wait([renewal])

    run_bounded(main())


def test_a_recall_takes_back_what_may_return_once_and_is_told_that_all_else_stays() -> None:
    scheduler = PlayedScheduler()
    turns = OpenTurns(scheduler, peer=PeerId("dp_x"))
    first, second, over = turns.open(), turns.open(), turns.open()
    taken: list[str] = []
    for turn in (first, second, over):
        turns.may_return(turn, partial(taken.append, turn))
    turns.stays(second)
    turns.stays(second)
    turns.end(over, TurnAbandoned(turn=over))
    assert [turns.returns(turn) for turn in (first, second, over)] == [True, False, False]

    for turn in (first, first, second, over):
        scheduler.recall(turn)

    assert taken == [first]
    assert scheduler.reports == [TurnAbandoned(turn=over), TurnStays(turn=first), TurnStays(turn=second)]
