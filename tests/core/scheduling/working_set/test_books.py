"""What turns and runs are booked with."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from core.scheduling.builders import World, arrived, failed, known_run, placed, probed, spec
from core.scheduling.working_set.worlds import answered, begun, seat, sized, world
from luftpause.core.model.ids import ModelName, PeerId, PrincipalId, ReplicaId, TurnId
from luftpause.core.model.replicas import Load, ReplicaKind
from luftpause.core.model.tool_names import A_PERSON
from luftpause.core.model.turns import TurnShape
from luftpause.core.scheduling.events import (
    Event,
    PeerResynced,
    ReplicaAdded,
    ReplicaProbed,
    ReplicaRemoved,
    RunPhase,
    TurnReturned,
    WokeUp,
)
from luftpause.core.scheduling.expiry import next_deadline
from luftpause.core.scheduling.working_set.books import SILENCE_S
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits


def test_a_place_is_kept_as_long_as_that_pays_and_then_the_run_may_move() -> None:
    busy = world()
    busy.place(sized("t1", 1000, "r"))
    busy.tell(answered("t1", 1000, tool="look"))
    run = busy.run("r")
    assert run is not None
    assert (run.kept, run.loose) == (1100, False)
    due = next_deadline(busy.state)
    assert due is not None
    busy.later(due - busy.now)
    busy.tell(WokeUp())
    run = busy.run("r")
    assert run is not None
    assert (run.kept, run.kept_until, run.loose) == (0, None, True)
    assert seat(busy).kept == 0


def test_without_forgetting_a_place_is_kept_for_ever() -> None:
    busy = world(limits=WorkingSetLimits(forget=False))
    busy.place(sized("t1", 1000, "r"))
    busy.tell(answered("t1", 1000, tool="look"))
    busy.later(1000.0)
    busy.tell(WokeUp())
    assert seat(busy).kept == 1100


def test_an_answer_that_is_silent_counts_as_under_way_after_a_while() -> None:
    busy = world(limits=WorkingSetLimits(first_tokens=1))
    busy.place(sized("t1", 100))
    busy.hold(sized("t2", 100))
    due = next_deadline(busy.state)
    assert due is not None
    assert SILENCE_S <= due - busy.now <= SILENCE_S + 1
    busy.later(due - busy.now)
    assert placed(busy.tell(WokeUp())) == [("t2", "a")]


def test_payers_are_charged_with_what_turns_came_to() -> None:
    busy = world()
    busy.place(sized("t1", 1000))
    assert busy.state.standings.of[PrincipalId("anonymous")].standing[0] == 10 * 1000 + 20 * 200
    busy.place(sized("t2", 1000))
    busy.tell(answered("t1", 1000, cached=900, reply=10))
    spent = (10 * 1000 + 20 * 200) + (10 * 100 + 900 + 20 * 10)
    assert busy.state.standings.of[PrincipalId("anonymous")].standing[0] == spent


def test_what_uses_no_memory_is_charged_with_none() -> None:
    busy = world()
    busy.place(arrived("t1", shape=TurnShape.ERRAND))
    assert busy.state.turns[TurnId("t1")].tokens == 0
    assert seat(busy).awaiting == ()
    assert arrived("t", kind=ReplicaKind.SINGLE_PASS).kind is not ReplicaKind.GENERATIVE


def test_after_a_restart_the_time_spent_paused_counts() -> None:
    busy = world()
    runs = (known_run("old", "a", age_s=600.0, tools=("look",)), known_run("new", "a", age_s=0.5, tools=("look",)))
    busy.tell(PeerResynced(peer=PeerId("p"), turns=(), runs=runs))
    old, new = busy.run("old"), busy.run("new")
    assert old is not None
    assert new is not None
    assert old.loose
    assert new.kept_until is not None


def asks_on(busy: World, run: str = "r", *, times: int = 10) -> None:
    """Let a run ask on a second after each of so many answers, without any tool call, and have one more."""
    for number in range(times):
        busy.place(sized(f"{run}{number}", 1000 + number, run))
        busy.tell(answered(f"{run}{number}", 1000 + number))
        busy.later(1.0)
    busy.place(sized(f"{run}-last", 1010, run))
    busy.tell(answered(f"{run}-last", 1010))


def test_whose_runs_ask_on_after_an_answer_has_their_places_kept() -> None:
    busy = world()
    busy.place(sized("t", 1000, "first"))
    busy.tell(answered("t", 1000))
    first = busy.run("first")
    assert first is not None
    assert (first.kept, first.replied) == (0, True)
    asks_on(busy)
    run = busy.run("r")
    assert run is not None
    assert (run.phase, run.kept, run.loose) == (RunPhase.IDLE, 1110, False)
    assert seat(busy).kept == 1110
    busy.later(60.0)
    busy.tell(WokeUp())
    assert seat(busy).kept == 0


def test_a_run_that_asks_on_waits_at_home_and_goes_before_what_begins() -> None:
    two = world("a", "b", limits=WorkingSetLimits(fill=1.0, first_tokens=1))
    asks_on(two)
    home = two.run("r")
    assert home is not None
    assert home.home == "a"
    at = {two.place(sized(name, 1000, name)): name for name in ("x", "y")}
    two.hold(sized("new", 1000, "new"))
    two.hold(sized("again", 1020, "r"))
    assert placed(two.tell(begun(at["a"]))) == [("again", "a")]
    assert placed(two.tell(begun(at["b"]))) == [("new", "b")]


def test_a_failure_is_no_answer_to_ask_on_after() -> None:
    busy = world()
    asks_on(busy)
    busy.place(sized("t", 1020, "r"))
    busy.tell(failed("t"))
    run = busy.run("r")
    assert run is not None
    assert (run.replied, run.kept) == (False, 0)


def test_what_is_recalled_of_a_run_that_asked_on_leaves_its_place() -> None:
    busy = world()
    asks_on(busy)
    busy.place(sized("t", 1020, "r"))
    busy.tell(TurnReturned(turn=TurnId("t")))
    run = busy.run("r")
    assert run is not None
    assert (run.replied, run.kept) == (False, 1110)


def test_lengths_are_learned_for_each_model() -> None:
    busy = world()
    busy.place(sized("t1", 1000))
    busy.tell(begun("t1"))
    busy.later(1.0)
    busy.tell(answered("t1", 2000))
    assert busy.state.working_set.lengths[ModelName("m")].bytes_per_token < 4.0


def test_what_was_kept_while_more_went_in_than_there_is_room_for_is_not_expected_and_its_loss_teaches_nothing() -> None:
    made = world()
    made.place(sized("t1", 2000, "r"))
    made.tell(answered("t1", 2000, tool="look"))
    made.later(0.1)
    made.place(sized("giant", 9000))
    made.tell(answered("giant", 9000))
    made.later(0.1)
    made.place(sized("t2", 2200, "r"))
    assert made.state.turns[TurnId("t2")].expects == 0
    made.tell(answered("t2", 2200, tool="look"))
    assert (seat(made).window, seat(made).hits) == (None, 1.0)
    made.later(0.1)
    made.place(sized("t3", 2400, "r"))
    assert made.state.turns[TurnId("t3")].expects == 2300


def read_so_far(tokens: int) -> ReplicaProbed:
    return replace(probed("a"), load=Load(running=0, waiting=0, kv_tokens=10_000, prompt_tokens=tokens))


COMEBACKS: dict[str, Sequence[Event]] = {
    "a probe failed": [probed("a", healthy=False), read_so_far(0)],
    "its counters fell between two probes": [read_so_far(0)],
    "it was taken away and declared again": [
        ReplicaRemoved(replica=ReplicaId("a")),
        ReplicaAdded(spec=spec("a")),
        read_so_far(0),
    ],
}


@pytest.mark.parametrize("comeback", COMEBACKS.values(), ids=COMEBACKS)
def test_an_engine_that_came_back_is_expected_to_have_nothing_and_teaches_nothing(comeback: Sequence[Event]) -> None:
    made = world()
    made.tell(read_so_far(900_000))
    for number in range(30):
        made.place(sized(f"a{number}", 100, f"r{number}"))
        made.tell(answered(f"a{number}", 100, tool="look"))
    made.tell_all(comeback)
    assert seat(made).kept == 0
    for number in range(30):
        made.place(sized(f"b{number}", 220, f"r{number}"))
        assert made.state.turns[TurnId(f"b{number}")].expects == 0
        made.tell(answered(f"b{number}", 220))
    assert (seat(made).window, seat(made).hits) == (None, 1.0)


def test_misses_before_anybody_knows_that_an_engine_was_started_anew_are_taken_back() -> None:
    made = world()
    made.tell(read_so_far(900_000))
    for number in range(30):
        made.place(sized(f"a{number}", 100, f"r{number}"))
        made.tell(answered(f"a{number}", 100, tool="look"))
    made.place(sized("late", 220, "r29"))
    for number in range(28):
        made.place(sized(f"b{number}", 220, f"r{number}"))
        made.tell(answered(f"b{number}", 220))
    assert seat(made).window is not None
    made.tell(read_so_far(100))
    made.tell(answered("late", 220))
    assert (seat(made).window, seat(made).hits) == (None, 1.0)


def test_whoever_waits_for_a_person_has_no_place_kept_and_teaches_what_people_take() -> None:
    made = world()
    made.place(sized("t1", 1000, "r"))
    made.tell(answered("t1", 1000, tool=A_PERSON))
    run = made.run("r")
    assert run is not None
    assert (run.paused, run.kept, run.loose) == (True, 0, True)
    assert seat(made).kept == 0
    made.later(300.0)
    assert made.place(sized("t2", 1200, "r")) == "a"
    assert made.state.turns[TurnId("t2")].expects == 0
    assert {tool: each.returned for tool, each in made.state.tools.histories.items()} == {A_PERSON: 1}
