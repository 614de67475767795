"""What a peer remembers, event by event."""

from dataclasses import replace

import pytest

from contracts.offers import MODEL, PEER, PRINCIPAL, offer, spec
from luftpause.adapters.link import ledger as ledger_module
from luftpause.adapters.link.ledger import MARKS_KEPT, MARKS_MAX, Ledger
from luftpause.core.model.charges import Charge
from luftpause.core.model.ids import Instant, ModelName, ReplicaId, RunId, ToolCallId, ToolName, TurnId
from luftpause.core.model.replicas import Placement, ReplicaKind
from luftpause.core.model.tool_names import TOOLS_MAX
from luftpause.core.model.traces import TraceContext
from luftpause.core.model.turns import TurnShape
from luftpause.core.scheduling.decide import decide
from luftpause.core.scheduling.events import (
    AnswerGrew,
    FirstTokenSeen,
    KnownRun,
    OpenTurn,
    RunPhase,
    TurnAbandoned,
    TurnFailed,
    TurnFinished,
    TurnReturned,
    TurnsRenewed,
    TurnStays,
)
from luftpause.core.scheduling.state import Limits, empty_state

PLACE = Placement(replica=ReplicaId("one"), endpoint=spec().endpoint, why="it serves the model")

RUN_IDLE_S = 900.0


def at(seconds: float) -> Instant:
    return Instant(seconds)


def name(turn: int) -> TurnId:
    return offer(turn).turn


def placed(ledger: Ledger, turn: int, run: str, now: float = 0.0) -> None:
    ledger.offered(offer(turn), at(now))
    ledger.accepted(name(turn), RunId(run))
    ledger.placed(name(turn), PLACE, at(now))


def placed_with(ledger: Ledger, turn: int, model: str) -> None:
    ledger.offered(offer(turn, model=model), at(0))
    ledger.accepted(name(turn), RunId("r"))
    ledger.placed(name(turn), replace(PLACE, replica=ReplicaId(f"of-{model}"), model=ModelName(model)), at(0))


def phases(ledger: Ledger, now: float = 0.0) -> dict[str, RunPhase]:
    return {run.run: run.phase for run in ledger.resync(at(now)).runs}


def test_a_placed_turn_is_told_of_with_all_that_charges_it() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    placed(ledger, 1, "r")
    told = ledger.resync(at(5))
    an_offer = offer(1)
    assert told.peer == PEER
    assert told.turns == (
        OpenTurn(
            turn=name(1),
            run=RunId("r"),
            replica=ReplicaId("one"),
            model=MODEL,
            kind=ReplicaKind.GENERATIVE,
            service_class=an_offer.service_class,
            caller=an_offer.caller,
            principal=PRINCIPAL,
        ),
    )
    assert [(run.run, run.phase, run.age_s) for run in told.runs] == [("r", RunPhase.GENERATING, 0.0)]


def test_what_a_turn_is_charged_with_is_told_as_it_is_by_now() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    charge = Charge(prompt=1000, reply=500, reply_bytes=100_000)
    ledger.offered(replace(offer(1), reply_max=2000), at(0))
    ledger.accepted(name(1), RunId("r"))
    ledger.placed(name(1), replace(PLACE, charge=charge), at(0))
    for reply_bytes, by_now in [(99_999, 500), (120_000, 750), (100_000, 750), (390_000, 2000)]:
        ledger.reported(AnswerGrew(turn=name(1), reply_bytes=reply_bytes), at(1))
        (told,) = ledger.resync(at(2)).turns
        assert told.charge is not None
        assert (told.charge.prompt, told.charge.reply, told.reply_max) == (1000, by_now, 2000)
    ledger.reported(AnswerGrew(turn=name(2), reply_bytes=1), at(1))  # nobody's
    placed(ledger, 3, "s")
    ledger.reported(AnswerGrew(turn=name(3), reply_bytes=10**9), at(1))
    assert ledger.resync(at(2)).turns[1].charge is None


def test_a_traced_turn_keeps_its_trace_for_a_scheduler_that_forgot_it() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    trace = TraceContext(trace="0af7651916cd43dd8448eb211c80319c", span="b7ad6b7169203331")
    ledger.offered(replace(offer(1), trace=trace), at(0))
    held = ledger.held_offer(name(1), at(1))
    assert held is not None
    assert held.trace == trace
    ledger.accepted(name(1), RunId("r"))
    ledger.placed(name(1), PLACE, at(1))
    (told,) = ledger.resync(at(2)).turns
    assert told.trace == trace
    state = decide(empty_state(Limits()), ledger.resync(at(2)), at(2)).state
    assert state.turns[name(1)].arrival.trace == trace


def test_a_turn_without_a_place_is_not_told_of_but_offered_again_under_its_run_with_its_age() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    ledger.offered(offer(1), at(10))
    assert ledger.held_offer(name(1), at(10)) == offer(1)
    ledger.accepted(name(1), RunId("r"))
    ledger.accepted(name(1), RunId("another"))
    again = ledger.held_offer(name(1), at(12.5))
    assert again is not None
    assert (again.keys.run, again.age_s) == ("r", 2.5)
    assert ledger.resync(at(12)).turns == ()
    assert ledger.resync(at(12)).runs == ()
    ledger.placed(name(1), PLACE, at(13))
    assert ledger.held_offer(name(1), at(13)) is None
    assert ledger.is_placed(name(1))


def test_a_finished_turn_leaves_its_run_paused_on_its_tools_or_idle() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    for turn, run in ((1, "tools"), (2, "done"), (3, "broke"), (4, "left")):
        placed(ledger, turn, run)
    ledger.reported(TurnFinished(turn=name(1), tool_calls=(ToolCallId("c"),)), at(1))
    ledger.reported(TurnFinished(turn=name(2)), at(2))
    ledger.reported(TurnFailed(turn=name(3), cause="x"), at(3))
    ledger.reported(TurnAbandoned(turn=name(4)), at(4))
    assert phases(ledger) == {
        "tools": RunPhase.PAUSED,
        "done": RunPhase.IDLE,
        "broke": RunPhase.IDLE,
        "left": RunPhase.IDLE,
    }
    assert ledger.resync(at(10)).turns == ()
    assert [run.age_s for run in ledger.resync(at(10)).runs] == [9, 8, 7, 6]


def test_a_run_generates_until_its_last_turn_ends_and_that_one_decides() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    placed(ledger, 1, "r")
    placed(ledger, 2, "r")
    ledger.reported(TurnFinished(turn=name(1), tool_calls=(ToolCallId("c"),)), at(1))
    assert phases(ledger) == {"r": RunPhase.GENERATING}
    ledger.reported(TurnFinished(turn=name(2)), at(2))
    assert phases(ledger) == {"r": RunPhase.IDLE}
    placed(ledger, 3, "r", 3)
    assert phases(ledger) == {"r": RunPhase.GENERATING}


@pytest.mark.parametrize(
    ("shape", "kind"), [(TurnShape.ALONE, ReplicaKind.GENERATIVE), (TurnShape.IN_RUN, ReplicaKind.SINGLE_PASS)]
)
def test_a_turn_that_is_in_no_run_is_told_of_and_leaves_the_run_that_it_names_paused(
    shape: TurnShape, kind: ReplicaKind
) -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    placed(ledger, 1, "r")
    ledger.reported(TurnFinished(turn=name(1), tool_calls=(ToolCallId("c"),)), at(1))
    ledger.offered(replace(offer(2, model=""), shape=shape, kind=None), at(2))
    ledger.accepted(name(2), RunId("r"))
    ledger.placed(name(2), replace(PLACE, kind=kind, model=MODEL), at(2))
    [told] = ledger.resync(at(3)).turns
    assert (told.kind, told.model, told.shape) == (kind, MODEL, shape)
    assert phases(ledger) == {"r": RunPhase.PAUSED}
    ledger.reported(TurnFailed(turn=name(2), cause="x"), at(4))
    assert phases(ledger) == {"r": RunPhase.PAUSED}


def aside(ledger: Ledger, turn: int, run: str, when: float) -> None:
    ledger.offered(replace(offer(turn), shape=TurnShape.ASIDE), at(when))
    ledger.accepted(name(turn), RunId(run))
    ledger.placed(name(turn), PLACE, at(when))


CALLS = TurnFinished(turn=name(1), tool_calls=(ToolCallId("c"),), tools=(ToolName("look"),))


@pytest.mark.parametrize("end", [TurnFinished(turn=name(2)), TurnFailed(turn=name(2), cause="x")])
@pytest.mark.parametrize("comes", ["before the turn", "before its end", "after it"])
def test_a_turn_aside_does_not_end_the_pause_that_it_falls_into(comes: str, end: TurnFinished | TurnFailed) -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    if comes == "before the turn":
        aside(ledger, 2, "r", 0)
    placed(ledger, 1, "r")
    if comes == "before its end":
        aside(ledger, 2, "r", 1)
    ledger.reported(CALLS, at(2))
    if comes == "after it":
        aside(ledger, 2, "r", 3)
        assert phases(ledger) == {"r": RunPhase.PAUSED}
    ledger.reported(end, at(4))
    assert phases(ledger) == {"r": RunPhase.PAUSED}
    assert [run.tools for run in ledger.resync(at(5)).runs] == [("look",)]
    placed(ledger, 3, "r", 6)
    ledger.reported(TurnFinished(turn=name(3)), at(7))
    assert phases(ledger) == {"r": RunPhase.IDLE}


def test_a_turn_aside_is_one_of_a_run_that_is_not_out() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    aside(ledger, 1, "r", 0)
    assert phases(ledger) == {"r": RunPhase.GENERATING}
    ledger.reported(TurnFinished(turn=name(1)), at(1))
    assert phases(ledger) == {"r": RunPhase.IDLE}


def test_a_run_is_told_of_with_the_newest_tool_calls_that_its_next_turn_may_echo() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)

    def calls(turn: int, *ids: str) -> list[str]:
        placed(ledger, turn, "r")
        ledger.reported(TurnFinished(turn=name(turn), tool_calls=tuple(ToolCallId(call) for call in ids)), at(turn))
        return [mark.removeprefix("call:") for mark in ledger.resync(at(turn)).runs[0].marks]

    assert calls(1, "a", "b") == ["a", "b"]
    assert calls(2) == ["a", "b"], "a conversation that goes on still echoes them"
    placed(ledger, 3, "r")
    ledger.reported(TurnFailed(turn=name(3), cause="x"), at(3))
    assert calls(4, "c") == ["a", "b", "c"]
    many = [f"m{number}" for number in range(MARKS_KEPT + 4)]
    assert calls(5, *many) == many
    assert calls(6, "z") == [*many[-MARKS_KEPT + 1 :], "z"]
    assert len(calls(7, *(f"n{number}" for number in range(MARKS_MAX + 1)))) == MARKS_MAX


def test_a_paused_run_is_told_of_with_the_tools_that_it_is_out_on() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    tools = tuple(ToolName(f"t{number}") for number in range(TOOLS_MAX + 1))

    def told(now: float) -> tuple[tuple[str, ...], float]:
        (run,) = ledger.resync(at(now)).runs
        return run.tools, run.age_s

    placed(ledger, 1, "r")
    ledger.reported(TurnFinished(turn=name(1), tool_calls=(ToolCallId("c"),), tools=tools), at(10))
    assert told(70) == (tools[:TOOLS_MAX], 60)
    ledger.offered(offer(2), at(80))
    ledger.accepted(name(2), RunId("r"))
    assert told(90) == (tools[:TOOLS_MAX], 80)
    ledger.placed(name(2), PLACE, at(90))
    assert told(95) == ((), 0)
    ledger.reported(TurnFailed(turn=name(2), cause="x"), at(100))
    assert told(100) == ((), 0)


def test_reports_that_end_nothing_and_reports_about_strangers_change_nothing() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    placed(ledger, 1, "r")
    before = ledger.resync(at(1))
    ledger.reported(FirstTokenSeen(turn=name(1)), at(1))
    ledger.reported(FirstTokenSeen(turn=name(1)), at(1))
    ledger.reported(TurnsRenewed(turns=(name(1),)), at(1))
    ledger.reported(TurnFinished(turn=name(9)), at(1))
    ledger.accepted(name(9), RunId("x"))
    ledger.placed(name(9), PLACE, at(1))
    ledger.withdrawn(name(9))
    ledger.withdrawn(name(1))  # it has its place: only a report ends it
    assert ledger.resync(at(1)) == before


def test_a_withdrawn_turn_leaves_nothing() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    ledger.offered(offer(1), at(0))
    ledger.withdrawn(name(1))
    assert ledger.held_offer(name(1), at(0)) is None
    ledger.placed(name(1), PLACE, at(0))
    assert not ledger.is_placed(name(1))


def test_the_first_placement_stands() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    placed(ledger, 1, "r")
    ledger.placed(name(1), Placement(replica=ReplicaId("two"), endpoint=PLACE.endpoint, why=""), at(0))
    ledger.reported(TurnFinished(turn=name(1)), at(1))
    assert phases(ledger) == {"r": RunPhase.IDLE}
    assert ledger.resync(at(1)).runs[0].replica == "one"


def test_an_ended_run_is_forgotten_and_its_open_turn_is_not() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    placed(ledger, 1, "r")
    ledger.run_ended(RunId("r"))
    assert phases(ledger) == {}
    assert [turn.turn for turn in ledger.resync(at(0)).turns] == [name(1)]
    ledger.reported(TurnFinished(turn=name(1)), at(1))
    assert phases(ledger) == {}


def test_a_run_idle_for_half_an_hour_is_dropped_and_a_younger_one_is_not() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    placed(ledger, 1, "old")
    placed(ledger, 2, "young")
    ledger.reported(TurnFinished(turn=name(1)), at(0))
    ledger.reported(TurnFinished(turn=name(2)), at(1))
    assert set(phases(ledger, RUN_IDLE_S)) == {"old", "young"}
    assert set(phases(ledger, RUN_IDLE_S + 0.5)) == {"young"}


def test_runs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "RUNS_MAX", 100)
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    for turn in range(110):
        placed(ledger, turn, f"r{turn}")
        ledger.reported(TurnFinished(turn=name(turn)), at(0))
    runs: tuple[KnownRun, ...] = ledger.resync(at(0)).runs
    assert len(runs) == 100
    assert runs[0].run == "r10"


def test_declared_replicas_are_kept_until_removed() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    ledger.declared(spec("a"))
    ledger.declared(spec("b"))
    ledger.declared(spec("a", "other"))
    ledger.removed(ReplicaId("b"))
    ledger.removed(ReplicaId("c"))
    assert ledger.replicas() == (spec("a", "other"),)


def test_a_run_is_told_of_with_each_of_its_models() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    placed_with(ledger, 1, "m")
    ledger.reported(TurnFinished(turn=name(1), tool_calls=(ToolCallId("c"),)), at(1))
    placed_with(ledger, 2, "n")
    ledger.reported(TurnFinished(turn=name(2)), at(2))
    told = [(run.run, run.model, run.phase, run.replica) for run in ledger.resync(at(2)).runs]
    assert told == [("r", "m", RunPhase.PAUSED, "of-m"), ("r", "n", RunPhase.IDLE, "of-n")]
    ledger.run_ended(RunId("r"))
    assert ledger.resync(at(2)).runs == ()


def test_a_run_goes_on_with_one_model_when_it_is_long_idle_with_another() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    placed_with(ledger, 1, "m")
    ledger.reported(TurnFinished(turn=name(1)), at(0))
    placed_with(ledger, 2, "n")
    ledger.reported(TurnFinished(turn=name(2)), at(RUN_IDLE_S))
    assert [run.model for run in ledger.resync(at(RUN_IDLE_S + 1)).runs] == ["n"]
    ledger.run_ended(RunId("r"))
    assert ledger.resync(at(RUN_IDLE_S + 1)).runs == ()


def test_a_run_is_told_of_with_its_parent_open_at_rest_or_offered_again() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    for turn, parent in ((1, "boss"), (2, None), (3, "chief")):
        ledger.offered(offer(turn), at(0))
        ledger.accepted(name(turn), RunId("r"), None if parent is None else RunId(parent))
    for turn in (1, 2):
        ledger.placed(name(turn), PLACE, at(0))
    told = ledger.resync(at(1))
    assert [turn.parent for turn in told.turns] == ["boss", None]
    assert [run.parent for run in told.runs] == ["boss"], "a turn that named none changes nothing"
    again = ledger.held_offer(name(3), at(1))
    assert again is not None
    assert (again.keys.run, again.keys.parent) == ("r", "chief")


@pytest.mark.parametrize("tools", [(), (ToolName("look"),)], ids=["idle", "paused"])
def test_a_turn_that_came_back_leaves_its_run_as_it_found_it(tools: tuple[ToolName, ...]) -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    placed(ledger, 1, "r")
    calls = tuple(ToolCallId(f"call-{tool}") for tool in tools)
    ledger.reported(TurnFinished(turn=name(1), tool_calls=calls, tools=tools), at(1))
    (before,) = ledger.resync(at(5)).runs
    placed(ledger, 2, "r", 3)
    ledger.reported(TurnStays(turn=name(2)), at(4))
    assert [turn.turn for turn in ledger.resync(at(4)).turns] == [name(2)]
    ledger.reported(TurnReturned(turn=name(2)), at(5))
    told = ledger.resync(at(9))
    assert told.turns == ()
    (after,) = told.runs
    assert (after.phase, after.tools, after.age_s) == (before.phase, before.tools, 4.0)
    assert set(before.marks) - set(after.marks) == set()


def test_a_turn_that_came_back_beside_another_leaves_its_run_to_that_one() -> None:
    ledger = Ledger(PEER, run_idle_s=RUN_IDLE_S)
    placed(ledger, 1, "r")
    placed(ledger, 2, "r")
    ledger.reported(TurnReturned(turn=name(2)), at(1))
    assert phases(ledger, 1) == {"r": RunPhase.GENERATING}
    ledger.reported(TurnReturned(turn=name(1)), at(2))
    assert phases(ledger, 2) == {"r": RunPhase.IDLE}
