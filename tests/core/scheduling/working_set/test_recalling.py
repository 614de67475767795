"""Which batch turns are asked back for an interactive one, and what becomes of them."""

from dataclasses import replace

import pytest

from core.scheduling.builders import World, failed, placed, probed, spec
from core.scheduling.working_set.worlds import answered, begun, replica, seat, sized, told
from luftpause.core.model.ids import PeerId, ReplicaId, RunId, TurnId
from luftpause.core.model.replicas import EngineKind
from luftpause.core.model.turns import TurnShape
from luftpause.core.scheduling.actions import Action, HoldTurn, RecallTurn
from luftpause.core.scheduling.events import PeerLost, RunEnded, RunPhase, TurnArrived, TurnReturned, TurnStays
from luftpause.core.scheduling.reasons import RecalledBecause
from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.trees import BEGUN_S


def world(*names: str, kv: int = 10_000, engine: EngineKind = EngineKind.VLLM, recalls: int = 1) -> World:
    limits = Limits(working_set=WorkingSetLimits(fill=1.0, fill_interactive=1.0, recalls=recalls))
    made = World(*(spec(name, engine=engine) for name in names or ("a",)), limits=limits)
    for name in names or ("a",):
        made.tell(told(name, kv))
    return made


def busy(*names: str, kv: int = 10_000, engine: EngineKind = EngineKind.VLLM, recalls: int = 1) -> World:
    """Return a world where each replica awaits as many first tokens of batch turns as it may."""
    made = world(*names, kv=kv, engine=engine, recalls=recalls)
    for number in range(3 * len(names or ("a",))):
        made.place(sized(f"b{number}", 800))
    return made


def urgent(turn: str = "i", tokens: int = 500) -> TurnArrived:
    return sized(turn, tokens, batch=False)


def recalled(actions: tuple[Action, ...]) -> list[str]:
    return [action.turn for action in actions if isinstance(action, RecallTurn)]


def returned(turn: str) -> TurnReturned:
    return TurnReturned(turn=TurnId(turn))


def again(turn: str, tokens: int = 800, run: str = "", *, recalls: int = 1, age_s: float = 0.0) -> TurnArrived:
    return replace(sized(turn, tokens, run), recalls=recalls, age_s=age_s)


def test_the_youngest_is_asked_back_and_told_for_whom() -> None:
    order, held = busy().tell(urgent())
    assert isinstance(order, RecallTurn)
    assert isinstance(held, HoldTurn)
    assert (order.turn, order.replica, order.favours) == ("b2", "a", "i")
    assert order.why is RecalledBecause.FIRST_TOKENS


def test_of_several_replicas_the_youngest_of_all_is_asked_back() -> None:
    assert recalled(busy("a", "b").tell(urgent())) == ["b5"]


def test_each_interactive_turn_asks_for_one_and_none_for_one_that_came_already() -> None:
    full = busy()
    assert recalled(full.tell(urgent("i1"))) == ["b2"]
    assert recalled(full.tell(urgent("i1"))) == []
    assert recalled(full.tell(urgent("i2"))) == ["b1"]
    assert recalled(full.tell(urgent("i3"))) == ["b0"]
    assert recalled(full.tell(urgent("i4"))) == []


def test_nobody_is_asked_back_for_batch_nor_for_whom_another_replica_takes() -> None:
    full = busy()
    assert recalled(full.tell(sized("b", 100))) == []
    two = world("a", "b")
    for number in range(5):
        two.place(sized(f"b{number}", 800))
    assert placed(two.tell(urgent())) != []


def test_nobody_is_asked_back_where_that_would_not_make_room() -> None:
    assert recalled(busy(kv=3500).tell(urgent(tokens=1400))) == []
    assert recalled(busy(kv=3500).tell(urgent(tokens=1200))) == ["b2"]


@pytest.mark.parametrize("engine", list(EngineKind))
def test_only_engines_are_asked_that_stop_and_do_nothing_but_compute(engine: EngineKind) -> None:
    stops = {EngineKind.VLLM, EngineKind.SGLANG, EngineKind.LLAMA_CPP, EngineKind.OLLAMA}
    assert bool(recalled(busy(engine=engine).tell(urgent()))) is (engine in stops)


def test_a_turn_that_began_to_answer_is_never_asked_back() -> None:
    full = busy()
    full.tell(begun("b2"))
    full.place(sized("b3", 800))
    full.tell(begun("b3"))
    full.place(sized("b4", 800))
    assert recalled(full.tell(urgent())) == ["b4"]
    assert recalled(full.tell(TurnStays(turn=TurnId("b4")))) == ["b1"]


def test_turns_that_stand_alone_and_interactive_ones_are_never_asked_back() -> None:
    mixed = world()
    mixed.place(replace(sized("b0", 800), shape=TurnShape.ALONE))
    mixed.place(sized("i0", 800, batch=False))
    mixed.place(sized("i1", 800, batch=False))
    assert recalled(mixed.tell(urgent())) == []


def test_one_that_came_back_before_is_asked_no_more_than_it_may_be() -> None:
    for recalls, asked in ((1, []), (2, ["b"])):
        full = world(recalls=recalls)
        for number in range(2):
            full.place(replace(sized(f"i{number}", 800), recalls=2))
        full.place(again("b"))
        assert recalled(full.tell(urgent())) == asked


def test_without_the_piece_nobody_is_asked_back() -> None:
    assert recalled(busy(recalls=0).tell(urgent())) == []


def test_its_place_goes_to_the_interactive_turn_and_it_waits_first_in_its_lane() -> None:
    full = busy()
    full.hold(sized("later", 800))
    full.tell(urgent())
    full.later(0.1)
    assert placed(full.tell(returned("b2"))) == [("i", "a")]
    full.hold(again("b2x", run="run-b2", age_s=0.1))
    assert full.state.held[TurnId("b2x")].ranked_at == pytest.approx(-BEGUN_S)
    assert placed(full.tell(begun("b0"))) == [("b2x", "a")]


def test_its_payer_had_nothing() -> None:
    full = world()
    before = full.state.standings
    full.place(sized("b", 800))
    full.tell(returned("b"))
    assert full.state.standings.of == before.of
    assert not full.state.turns
    assert seat(full).in_flight == 0
    assert not seat(full).awaiting


def test_a_run_that_was_out_on_its_tool_has_its_place_again() -> None:
    home = world()
    home.place(sized("t1", 1000, "r"))
    home.tell(answered("t1", 1000, tool="look"))
    home.place(sized("t2", 1200, "r"))
    assert seat(home).kept == 0
    home.tell(returned("t2"))
    run = home.run("r")
    assert run is not None
    assert (run.phase, run.home, run.loose) == (RunPhase.PAUSED, "a", False)
    assert seat(home).kept == run.measure.context == 1100
    assert placed(home.tell(again("t3", 1200, "r"))) == [("t3", "a")]


def test_a_run_that_had_moved_may_begin_anywhere_again() -> None:
    two = world("a", "b")
    two.place(sized("t1", 1000, "r"))
    two.tell(answered("t1", 1000, tool="look"))
    two.tell(probed("a", healthy=False))
    assert two.place(sized("t2", 1200, "r")) == "b"
    two.tell(returned("t2"))
    moved = two.run("r")
    assert moved is not None
    assert moved.loose
    two.tell(told("a", 10_000))
    two.place(sized("x", 3000))
    assert len(placed(two.tell(again("t3", 1200, "r")))) == 1


def test_a_first_turn_leaves_its_run_idle() -> None:
    one = world()
    one.place(sized("t1", 1000, "r"))
    one.tell(returned("t1"))
    assert one.phase("r") is RunPhase.IDLE


def test_a_turn_beside_another_leaves_the_run_to_that_one() -> None:
    one = world()
    one.place(sized("t1", 1000, "r"))
    one.place(sized("t2", 1000, "r"))
    one.tell(returned("t2"))
    run = one.run("r")
    assert run is not None
    assert run.turns == ("t1",)


def test_whatever_else_ends_it_owes_nothing() -> None:
    for ending in (failed("b2"), PeerLost(peer=PeerId("p")), RunEnded(run=RunId("run-b2"))):
        full = busy()
        full.tell(urgent())
        full.tell(ending)
        full.tell(returned("b2"))
        full.tell(TurnStays(turn=TurnId("b2")))
        assert TurnId("b2") not in full.state.turns


def test_what_was_never_asked_back_may_say_that_it_stays() -> None:
    full = busy()
    assert full.tell(TurnStays(turn=TurnId("b0"))) == ()
    assert full.tell(TurnStays(turn=TurnId("nobody"))) == ()
    assert full.tell(returned("nobody")) == ()
    assert replica(full).in_flight == 3


def test_when_nobody_waits_any_more_no_other_is_asked() -> None:
    full = busy()
    full.tell(urgent())
    full.tell(begun("b0"))
    assert not full.state.held
    assert recalled(full.tell(TurnStays(turn=TurnId("b2")))) == []


def test_turn_admission_takes_a_returned_turn_for_over() -> None:
    plain = World(spec("a"))
    plain.tell(probed("a"))
    plain.place(sized("t", 10, "r"))
    plain.tell(returned("t"))
    assert replica(plain).in_flight == 0
    assert plain.state.replicas[ReplicaId("a")].seat.kept == 0
