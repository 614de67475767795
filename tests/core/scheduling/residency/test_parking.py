"""Runs' KV: what is saved before a model goes, who gets it back, and when it is deleted."""

from dataclasses import replace

import pytest

from core.scheduling.builders import World, arrived, failed, finished, placed, probed
from core.scheduling.residency.words import down, engine, joined, model, saved, unload_asked, up
from luftpause.core.model.ids import KvFile, LauncherId, ModelName, ReplicaId, RunId
from luftpause.core.model.models import EnginePhase
from luftpause.core.model.parked_kv import SavedKv
from luftpause.core.model.turns import TurnShape
from luftpause.core.scheduling.actions import Action, PlaceTurn
from luftpause.core.scheduling.events import RunEnded
from luftpause.core.scheduling.residency.actions import DropKv, KvVerdict, LoadModel, UnloadModel
from luftpause.core.scheduling.residency.events import LauncherLost, LoadAsked
from luftpause.core.scheduling.residency.kv_costs import MISSES_MAX
from luftpause.core.scheduling.residency.kv_state import ParkPhase
from luftpause.core.scheduling.residency.reasons import KvDropReason, KvReason
from luftpause.core.scheduling.residency.state import ResidencyLimits
from luftpause.core.scheduling.state import Limits

MANY = 1 << 30
A = ModelName("A")
SPECS = (model("A", 6), model("B", 6))
LIMITS = Limits(residency=ResidencyLimits(min_residency_s=0.0))


def world(*, parking: int = MANY, slots: int = 2) -> World:
    """A is up, with slots."""
    made = World(limits=LIMITS)
    made.tell(joined(*SPECS, parking=parking))
    made.tell(arrived("first", "first", model="A"))
    made.tell(up("A", slots=slots))
    made.tell(finished("first"))
    made.tell(RunEnded(run=RunId("first")))
    return made


def go_out(made: World, run: str, tokens: int = 1000) -> None:
    """Let a run take a turn, and call a tool."""
    made.tell(arrived(f"{run}-1", run, model="A"))
    made.tell(finished(f"{run}-1", tools=["look"], tokens=tokens))


def swap_out(made: World) -> tuple[KvVerdict, ...]:
    """Have A unloaded; return what becomes of its slots."""
    actions = made.tell(unload_asked("A", keep=True))
    return next(action.kv for action in actions if isinstance(action, UnloadModel))


def park(made: World, size: int = 1000) -> list[KvFile]:
    """Have A unloaded, and all that was to be saved saved; return the files."""
    verdicts = swap_out(made)
    files = [verdict.file for verdict in verdicts if verdict.file is not None]
    tokens = {verdict.file: verdict.tokens for verdict in verdicts}
    made.tell(down("A", kv=tuple(saved(file, tokens[file], size) for file in files), prefill_s=0.01))
    return files


def dropped(actions: tuple[Action, ...]) -> list[tuple[int, KvDropReason]]:
    return [(file, each.why) for each in actions if isinstance(each, DropKv) for file in each.files]


def placements(actions: tuple[Action, ...]) -> list[PlaceTurn]:
    return [each for each in actions if isinstance(each, PlaceTurn)]


def come_back(made: World, run: str, *, slots: int = 2) -> PlaceTurn:
    made.tell(arrived(f"{run}-2", run, model="A"))
    (order,) = placements(made.tell(up("A", slots=slots)))
    return order


def test_a_run_keeps_its_slot_and_a_new_one_takes_another() -> None:
    made = world()
    go_out(made, "r")
    (other,) = placements(made.tell(arrived("s-1", "s", model="A")))
    (again,) = placements(made.tell(arrived("r-2", "r", model="A")))
    assert (again.slot, other.slot) == (0, 1)
    (third,) = placements(made.tell(arrived("x", "x", model="A")))
    assert third.slot is None  # every slot has a turn in flight: the engine queues it
    assert third.restore is None
    (offered_again,) = placements(made.tell(arrived("r-2", "r", model="A")))
    assert offered_again == again


def test_what_stands_alone_goes_to_a_slot_that_nobody_needs() -> None:
    made = world()
    go_out(made, "r")
    alone = replace(arrived("q", "q", model="A"), shape=TurnShape.ALONE)
    (order,) = placements(made.tell(alone))
    assert order.slot == 1
    made.tell(finished("q", tokens=5))
    assert made.state.residency.slots[A][1].run is None


def test_while_the_engine_chose_for_one_it_chooses_for_all_and_for_that_run_ever_after() -> None:
    made = world(slots=2)
    go_out(made, "r")
    for turn in ("a", "b"):
        made.tell(arrived(turn, turn, model="A"))
    (adrift,) = placements(made.tell(arrived("c", "c", model="A")))
    assert adrift.slot is None
    made.tell(finished("a"))
    (own,) = placements(made.tell(arrived("a-2", "a", model="A")))
    assert own.slot is None  # its slot may be the one that the engine chose
    for turn in ("c", "a-2", "b"):
        made.tell(finished(turn))
    slots = {run: placements(made.tell(arrived(f"{run}-3", run, model="A")))[0].slot for run in "ab"}
    assert sorted(slots.values(), key=str) == [0, 1]
    for run in "ab":
        made.tell(finished(f"{run}-3"))
    (again,) = placements(made.tell(arrived("c-2", "c", model="A")))
    assert again.slot is None  # the engine has its KV somewhere, and finds it itself


def test_what_was_saved_of_another_prompt_is_not_kept() -> None:
    for tokens, is_kept in ((400, False), (600, True), (2000, True), (2500, False)):
        made = world()
        go_out(made, "r")
        (verdict,) = swap_out(made)
        assert verdict.file is not None
        made.tell(down("A", kv=(saved(verdict.file, tokens),)))
        assert bool(made.state.residency.parked) is is_kept, tokens


def test_an_errand_has_no_slot() -> None:
    made = world()
    (order,) = placements(made.tell(replace(arrived("q", "q", model="A"), shape=TurnShape.ERRAND)))
    assert order.slot is None
    assert all(slot.turn is None for slot in made.state.residency.slots[A])


def test_where_others_send_requests_too_the_engine_chooses() -> None:
    made = world()
    for _ in range(3):
        made.tell(probed("box/A", running=2, waiting=0))
    assert made.state.replicas[ReplicaId("box/A")].foreign
    (order,) = placements(made.tell(arrived("t", "r", model="A")))
    assert order.slot is None


def test_a_paused_run_comes_back_to_what_was_saved() -> None:
    made = world()
    go_out(made, "r")
    (file,) = park(made)
    order = come_back(made, "r")
    assert (order.slot, order.restore) == (0, file)
    (again,) = placements(made.tell(arrived("r-2", "r", model="A")))
    assert again == order
    actions = made.tell(finished("r-2", tokens=1500, cached=1010, restore_s=0.5))
    assert dropped(actions) == [(file, KvDropReason.RESTORED)]
    assert made.state.residency.models[A].kv.restore_s == 0.5 / 1010
    assert not made.state.residency.parked


def test_each_slot_has_a_reason() -> None:
    made = world(slots=4)
    go_out(made, "out")
    go_out(made, "short", tokens=10)
    made.tell(arrived("i-1", "idle", model="A"))
    made.tell(finished("i-1", tokens=1000))
    why = {verdict.run: (verdict.why, verdict.file is not None) for verdict in swap_out(made)}
    assert why == {
        "out": (KvReason.EXPECTED, True),
        "short": (KvReason.NOT_WORTH, False),
        "idle": (KvReason.NOT_EXPECTED, False),
    }


def test_whose_turn_waits_is_saved_before_who_is_only_expected() -> None:
    made = world(slots=4)
    go_out(made, "out")
    go_out(made, "back")
    made.tell(arrived("busy", "busy", model="A"))
    made.tell(unload_asked("A", keep=True))  # it drains: a turn is in flight
    made.tell(arrived("back-2", "back", model="A"))
    actions = made.tell(finished("busy"))
    verdicts = next(action.kv for action in actions if isinstance(action, UnloadModel))
    assert [(each.run, each.why) for each in verdicts if each.file is not None] == [
        ("back", KvReason.WAITS),
        ("out", KvReason.EXPECTED),
    ]


def test_a_run_whose_tool_takes_too_long_is_not_saved() -> None:
    made = world()
    go_out(made, "r")
    made.later(LIMITS.residency.soft_lease_s_max + 1)
    assert [each.why for each in swap_out(made)] == [KvReason.NOT_EXPECTED]


def test_what_is_quicker_computed_again_is_not_saved() -> None:
    made = world()
    go_out(made, "r")
    (verdict,) = swap_out(made)
    assert verdict.file is not None
    made.tell(down("A", kv=(saved(verdict.file, 1010, 1000, 5.0),), prefill_s=0.0001))
    come_back(made, "r")
    made.tell(finished("r-2", tools=["look"], tokens=1000, cached=1000, restore_s=5.0))
    assert [each.why for each in swap_out(made)] == [KvReason.NOT_WORTH]


@pytest.mark.parametrize(
    ("cached", "restore_s"), [(10, 0.1), (0, 0.1), (1000, None)], ids=["hardly any", "all computed anew", "it fails"]
)
def test_a_model_whose_restores_bring_nothing_is_left_alone_until_an_operator_loads_it(
    cached: int, restore_s: float | None
) -> None:
    made = world()
    go_out(made, "r")
    for _ in range(MISSES_MAX):
        (file,) = park(made)
        assert come_back(made, "r").restore == file
        made.tell(finished("r-2", tools=["look"], tokens=1000, cached=cached, restore_s=restore_s))
    assert [each.why for each in swap_out(made)] == [KvReason.NEVER_HELPS]
    made.tell(down("A"))
    assert come_back(made, "r").restore is None
    made.tell(finished("r-2", tools=["look"], tokens=1000, cached=0))
    assert [each.why for each in swap_out(made)] == [KvReason.NEVER_HELPS], "a load for a turn tries nothing"
    made.tell_all([down("A"), LoadAsked(model=A)])
    come_back(made, "r")
    made.tell(finished("r-2", tools=["look"], tokens=1000, cached=0))
    assert [each.why for each in swap_out(made)] == [KvReason.EXPECTED]


def test_nothing_is_saved_where_nothing_may_be_kept_nor_when_a_stop_is_firm() -> None:
    made = world(parking=0)
    go_out(made, "r")
    assert swap_out(made) == ()
    made = world()
    go_out(made, "r")
    made.tell(arrived("x", "x", model="A"))
    (order,) = [each for each in made.tell(unload_asked("A", firmly=True)) if isinstance(each, UnloadModel)]
    assert order.firmly
    assert order.kv == ()


def test_what_could_not_be_saved_is_computed_again() -> None:
    made = world()
    go_out(made, "r")
    (verdict,) = swap_out(made)
    assert made.state.residency.parked[A][RunId("r")].phase is ParkPhase.SAVING
    made.tell(down("A"))
    assert not made.state.residency.parked
    order = come_back(made, "r")
    assert (order.slot, order.restore) == (0, None)
    assert verdict.file is not None


def test_the_least_worth_for_its_size_goes_when_the_files_are_too_large() -> None:
    made = world(parking=2500, slots=4)
    for run in ("r", "s", "t"):
        go_out(made, run)
    verdicts = {each.run: each for each in swap_out(made)}
    first = [each for each in verdicts.values() if each.file is not None]
    assert [each.run for each in first] == ["t"]  # nobody knows yet how large a file is: one is tried
    assert verdicts[RunId("r")].why is KvReason.NO_ROOM
    assert first[0].file is not None
    made.tell(down("A", kv=(saved(first[0].file, 1010, 1000),), prefill_s=0.01))
    come_back(made, "t", slots=4)
    made.tell(finished("t-2", tools=["look"], tokens=1000, cached=1000, restore_s=0.0))
    for run in ("r", "s"):
        made.tell(arrived(f"{run}-2", run, model="A"))
        made.tell(finished(f"{run}-2", tools=["look"], tokens=1000))
    assert len(park(made, size=1000)) == 2
    actions = made.tell(joined(*SPECS, parking=1200, kv=_files(made)))
    assert [why for _, why in dropped(actions)] == [KvDropReason.NO_ROOM]
    assert len(_files(made)) == 1


def _files(made: World) -> tuple[SavedKv, ...]:
    return tuple(saved(each.file, each.tokens, each.size) for each in made.state.residency.parked[A].values())


def test_a_file_that_turned_out_too_large_goes_at_once() -> None:
    made = world(parking=1500)
    go_out(made, "r")
    (verdict,) = swap_out(made)
    assert verdict.file is not None
    actions = made.tell(down("A", kv=(saved(verdict.file, 1010, 2000),)))
    assert dropped(actions) == [(verdict.file, KvDropReason.NO_ROOM)]


def test_a_file_goes_with_its_run() -> None:
    made = world()
    go_out(made, "r")
    (file,) = park(made)
    assert dropped(made.tell(RunEnded(run=RunId("r")))) == [(file, KvDropReason.RUN_ENDED)]
    assert not made.state.residency.parked


def test_a_run_that_ends_while_it_is_saved_leaves_nothing() -> None:
    made = world()
    go_out(made, "r")
    (verdict,) = swap_out(made)
    assert verdict.file is not None
    assert dropped(made.tell(RunEnded(run=RunId("r")))) == [(verdict.file, KvDropReason.RUN_ENDED)]
    actions = made.tell(down("A", kv=(saved(verdict.file),)))
    assert dropped(actions) == [(verdict.file, KvDropReason.UNKNOWN)]


def test_a_turn_that_fails_takes_its_file_along() -> None:
    made = world()
    go_out(made, "r")
    (file,) = park(made)
    come_back(made, "r")
    assert dropped(made.tell(failed("r-2"))) == [(file, KvDropReason.RESTORED)]
    assert made.state.residency.models[A].kv.misses == 0


def test_a_turn_that_finds_no_free_slot_goes_on_without() -> None:
    made = world(slots=1)
    go_out(made, "r")
    (file,) = park(made)
    made.tell(arrived("x", "x", model="A"))
    made.tell(up("A", slots=1))
    actions = made.tell(arrived("r-2", "r", model="A"))
    (order,) = placements(actions)
    assert (order.slot, order.restore) == (None, None)
    assert dropped(actions) == [(file, KvDropReason.PASSED_OVER)]


def test_an_engine_started_otherwise_cannot_read_it() -> None:
    made = world()
    go_out(made, "r")
    (file,) = park(made)
    made.tell(joined(model("A", 6, build="2"), SPECS[1], parking=MANY, kv=(saved(file),)))
    made.tell(arrived("r-2", "r", model="A"))
    actions = made.tell(up("A", slots=2))
    assert [order.restore for order in placements(actions)] == [None]
    assert dropped(actions) == [(file, KvDropReason.OUTDATED)]


def test_a_model_that_is_declared_no_longer_leaves_no_file() -> None:
    made = world()
    go_out(made, "r")
    (file,) = park(made)
    actions = made.tell(joined(SPECS[1], parking=MANY, kv=(saved(file),)))
    assert dropped(actions)[0] == (file, KvDropReason.OUTDATED)
    assert not made.state.residency.parked


def test_a_model_that_another_launcher_has_now_leaves_its_files_with_the_first() -> None:
    made = world()
    go_out(made, "r")
    (file,) = park(made)
    made.tell(LauncherLost(launcher=LauncherId("box")))
    actions = made.tell(joined(*SPECS, launcher="other", parking=MANY))
    assert [(each.launcher, each.files) for each in actions if isinstance(each, DropKv)] == [("box", (file,))]


def test_after_a_lost_link_what_is_there_counts() -> None:
    made = world(slots=4)
    for run in ("r", "s"):
        go_out(made, run)
    kept, lost = park(made)
    made.tell(LauncherLost(launcher=LauncherId("box")))
    actions = made.tell(joined(*SPECS, parking=MANY, kv=(saved(kept), saved(99))))
    assert dropped(actions) == [(99, KvDropReason.UNKNOWN)]
    assert {each.file for each in made.state.residency.parked[A].values()} == {kept}
    assert lost != kept


def test_what_was_saved_while_the_link_was_down_is_kept() -> None:
    made = world(slots=4)
    for run in ("r", "s"):
        go_out(made, run)
    first, second = (each.file for each in swap_out(made))
    assert first is not None
    assert second is not None
    made.tell(LauncherLost(launcher=LauncherId("box")))
    still = engine("A", EnginePhase.STOPPING)
    made.tell(joined(*SPECS, parking=MANY, kv=(saved(first),), engines=(still,)))
    phases = {each.file: each.phase for each in made.state.residency.parked[A].values()}
    assert phases == {first: ParkPhase.KEPT, second: ParkPhase.SAVING}
    assert dropped(made.tell(down("A", kv=(saved(first), saved(second))))) == []
    assert {each.phase for each in made.state.residency.parked[A].values()} == {ParkPhase.KEPT}


def test_a_stop_that_nobody_heard_the_end_of_saved_what_is_there() -> None:
    made = world(slots=4)
    for run in ("r", "s"):
        go_out(made, run)
    first, _ = (each.file for each in swap_out(made))
    assert first is not None
    made.tell(LauncherLost(launcher=LauncherId("box")))
    made.tell(joined(*SPECS, parking=MANY, kv=(saved(first),)))
    assert {each.file for each in made.state.residency.parked[A].values()} == {first}


def test_what_makes_no_sense_is_not_kept() -> None:
    made = world()
    go_out(made, "r")
    (verdict,) = swap_out(made)
    assert verdict.file is not None
    made.tell(down("A", kv=(saved(verdict.file, took_s=float("nan")),), prefill_s=float("nan")))
    assert not made.state.residency.parked
    assert made.state.residency.models[A].kv.prefill_s is None


def test_a_crash_leaves_what_was_parked_before() -> None:
    made = world()
    go_out(made, "r")
    (file,) = park(made)
    made.tell(arrived("x", "x", model="A"))
    made.tell(up("A", slots=2))
    made.tell(down("A", "signal 11"))
    made.tell(failed("x"))
    assert {each.file for each in made.state.residency.parked[A].values()} == {file}
    assert [each for each in made.tell(arrived("r-2", "r", model="A")) if isinstance(each, LoadModel)]
    assert placed(made.tell(up("A", slots=2))) == [("r-2", "box/A")]
