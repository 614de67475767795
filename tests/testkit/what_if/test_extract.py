"""From an event log to a trace."""

from dataclasses import replace

import pytest

from adapters.event_log.logs import resealed
from core.scheduling.builders import arrived, failed, known_run, open_turn, probed, spec
from luftpause.adapters.event_log.lines import gap
from luftpause.adapters.event_log.reading import UnreadableError
from luftpause.core.model.ids import Instant, ModelName, PeerId, ReplicaId, RunId, TurnId
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.model.turns import ServiceClass, TurnShape
from luftpause.core.scheduling.decide import decide
from luftpause.core.scheduling.events import (
    Event,
    PeerLost,
    PeerResynced,
    ReplicaAdded,
    RunEnded,
    TurnAbandoned,
    TurnFinished,
    WokeUp,
)
from luftpause.core.scheduling.state import Limits, State, empty_state
from luftpause.testkit.what_if.extract import LEAD_S, extract
from luftpause.testkit.what_if.trace import Trace, TracedRun
from testkit.what_if.recorded import declared, log_of, turn


def only(trace: Trace) -> TracedRun:
    assert len(trace.runs) == 1
    return trace.runs[0]


def state_after(*told: tuple[float, Event]) -> State:
    state = empty_state(Limits())
    for now, event in told:
        state = decide(state, event, Instant(now)).state
    return state


def test_a_run_is_its_turns_in_order_with_their_tokens_and_what_they_asked_for() -> None:
    told = [*declared(), *turn("1", "r", 5.0, 2.0, (100, 10, 0), tools=1), *turn("2", "r", 9.0, 1.0, (150, 20, 96))]
    trace = extract(log_of(*told, (11.0, RunEnded(run=RunId("r")))))
    run = only(trace)
    first, second = run.turns
    assert (first.arrived_at, first.placed_at, first.first_at, first.ended_at) == (5.0, 5.0, 6.0, 7.0)
    assert (first.paused, second.paused, second.arrived_at) == (True, False, 9.0)
    assert [each.usage and each.usage.prompt_tokens for each in run.turns] == [100, 150]
    assert (run.whole, run.told_end, run.service_class, run.model) == (True, True, ServiceClass.INTERACTIVE, "m")
    assert (trace.until, trace.policies, trace.left_out.total()) == (10.0, ("turn-admission",), 0)


def test_a_turn_that_was_held_says_where_and_how_long() -> None:
    two = [(at + 1, event) for at, event in turn("2", "s", 0.5, 2.0)]
    told = [*declared(), turn("1", "r", 0.0, 9.0)[0], (0.5, probed("a", 1, 1)), two[0]]
    told += [(4.0, TurnFinished(turn=TurnId("1"))), (6.0, two[2][1])]
    held = extract(log_of(*told)).runs[1].turns[0]
    assert (held.arrived_at, held.placed_at, held.held_s, held.first_at, held.replica) == (1.5, 4.0, 2.5, None, "a")


def test_time_before_the_first_turn_is_cut_off() -> None:
    assert only(extract(log_of(*declared(), *turn("1", "r", 500.0, 2.0)))).turns[0].arrived_at == LEAD_S


def test_what_failed_or_was_given_up_is_left_out_and_counted() -> None:
    broken: list[tuple[float, Event]] = [(1.0, arrived("1", "r")), (2.0, failed("1")), (3.0, arrived("2", "r"))]
    broken += [(4.0, TurnAbandoned(turn=TurnId("2"))), (4.5, arrived("3", "s")), (4.6, failed("3"))]
    broken += [(4.7, arrived("4", "r", model="none")), (4.8, arrived("5", "r", kind=ReplicaKind.SINGLE_PASS))]
    broken += [(4.9, arrived("7", "r", shape=TurnShape.ALONE))]
    trace = extract(log_of(*declared(), *broken, *turn("6", "r", 5.0, 1.0)))
    assert [each.arrived_at for each in only(trace).turns] == [5.0]
    assert trace.left_out == {
        "failed turns": 2,
        "abandoned turns": 1,
        "refused turns": 1,
        "single-pass turns": 1,
        "turns in no run": 1,
        "runs that were never answered": 2,
        "runs split at turns side by side or by model": 1,
    }


def test_runs_under_way_at_either_end_of_the_log_are_not_whole() -> None:
    state = state_after(*declared(), *turn("1", "old", 0.0, 1.0, tools=1))
    told = [*turn("2", "old", 10.0, 1.0), *turn("3", "new", 20.0, 1.0), *turn("4", "paused", 30.0, 1.0, tools=1)]
    told += [*turn("5", "open", 40.0, 1.0), (50.0, arrived("6", "open"))]
    trace = extract(log_of(*told, state=state))
    assert {run.run: (run.begun_before, run.unfinished) for run in trace.runs} == {
        "old": (True, False),
        "new": (False, False),
        "paused": (False, True),
        "open": (False, True),
    }
    assert trace.replicas == {"a": ("m",)}
    assert trace.left_out == {"turns still open at the end": 1}


def test_a_paused_run_that_was_forgotten_is_over_and_its_name_begins_another() -> None:
    told = [*declared(), *turn("1", "r", 0.0, 1.0, tools=1), (1900.0, WokeUp()), *turn("2", "r", 2000.0, 1.0)]
    trace = extract(log_of(*told))
    assert [(run.run, run.unfinished, run.told_end) for run in trace.runs] == [
        ("r", False, False),
        ("r (2)", False, False),
    ]


def test_turns_side_by_side_and_other_models_go_into_runs_of_their_own() -> None:
    told = [*declared("m", "n"), *turn("1", "r", 0.0, 8.0), *turn("2", "r", 2.0, 2.0), *turn("3", "r", 9.0, 1.0)]
    told += [(20.0, replace(arrived("4", "r"), model=ModelName("n"))), (21.0, TurnFinished(turn=TurnId("4")))]
    trace = extract(log_of(*sorted(told, key=lambda each: each[0])))
    assert [(run.run, run.model, len(run.turns)) for run in trace.runs] == [
        ("r", "m", 2),
        ("r (2)", "m", 1),
        ("r (3)", "n", 1),
    ]


def test_a_restart_goes_on_by_the_wall_clock_and_keeps_what_its_dataplane_still_has() -> None:
    told = [
        *declared(at=100.0),
        *turn("1", "r", 101.0, 1.0, tools=1),
        (103.0, arrived("2", "r")),
        (104.0, arrived("3", "s")),
    ]
    again = [*declared(at=7.0), (7.5, PeerResynced(peer=PeerId("p"), turns=(open_turn("2", "r", "a"),), runs=()))]
    again += [(9.0, TurnFinished(turn=TurnId("2"))), *turn("4", "s", 10.0, 1.0)]
    trace = extract([*log_of(*told), *log_of(*again, utc="2026-01-01T00:01:00Z")])
    first, second = trace.runs
    assert [(each.arrived_at, each.ended_at) for each in first.turns] == [(1.0, 2.0), (3.0, 62.0)]
    assert [(each.arrived_at, each.ended_at) for each in second.turns] == [(63.0, 64.0)]
    assert trace.left_out == {"turns of a lost dataplane": 1}


def test_a_turn_whose_end_fell_into_a_gap_is_over_when_its_run_asks_again() -> None:
    told = [*declared(), *turn("1", "r", 0.0, 1.0), (2.0, arrived("2", "r"))]
    lines = [
        *log_of(*told),
        gap(5),
        *log_of(*turn("3", "r", 4.0, 1.0), state=state_after(*declared()), utc="2026-01-01T00:00:04Z"),
    ]
    trace = extract(resealed(lines))
    assert [each.arrived_at for each in only(trace).turns] == [0.0, 4.0]
    assert trace.left_out == {"events that the log lost": 5, "turns whose end nobody saw": 1}


def test_a_turn_without_a_sign_of_life_is_over_when_its_run_asks_again() -> None:
    trace = extract(log_of(*declared(), (0.0, arrived("1", "r")), *turn("2", "r", 700.0, 1.0)))
    assert len(only(trace).turns) == 1
    assert trace.left_out == {"turns whose end nobody saw": 1}


def test_a_lost_dataplane_and_a_repeated_offer_change_no_turn_that_ended() -> None:
    told = [*declared(), *turn("1", "r", 0.0, 1.0), (2.0, arrived("2", "r")), (3.0, arrived("2", "r", age_s=1.0))]
    told += [(4.0, PeerLost(peer=PeerId("p"))), (5.0, TurnFinished(turn=TurnId("2")))]
    trace = extract(log_of(*told))
    assert len(only(trace).turns) == 1
    assert trace.left_out == {"turns of a lost dataplane": 1}


def test_runs_that_a_dataplane_remembers_began_before() -> None:
    resynced = PeerResynced(peer=PeerId("p"), turns=(), runs=(known_run("r", "a"),))
    assert only(extract(log_of(*declared(), (0.5, resynced), *turn("1", "r", 1.0, 1.0)))).begun_before


def test_only_replicas_that_were_healthy_and_generate_are_there() -> None:
    classifier: Event = ReplicaAdded(spec=spec("c", kind=ReplicaKind.SINGLE_PASS))
    told = [*declared(), (0.0, classifier), (0.0, probed("c")), (0.0, ReplicaAdded(spec=spec("down")))]
    assert extract(log_of(*told, *turn("1", "r", 0.0, 1.0))).replicas == {ReplicaId("a"): ("m",)}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "no segment"),
        ([b"hello\n", b"world\n"], "line 1: "),
        (
            [log_of(*declared())[0], b'{"line":"event","now":1,"kind":"Nonsense","event":{},"orders":[]}\n'],
            "line 2: unknown",
        ),
        (
            [log_of(*declared())[0], b'{"line":"event","now":1,"kind":"WokeUp","event":{},"orders":7}\n'],
            "line 2: orders",
        ),
    ],
)
def test_what_is_no_log_is_told_with_its_line(lines: list[bytes], said: str) -> None:
    with pytest.raises(UnreadableError, match=said):
        extract(lines if lines[:1] == [b"hello\n"] else resealed(lines))
