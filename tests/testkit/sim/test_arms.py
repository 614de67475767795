"""The arms, on a pool that only notes what they do."""

from dataclasses import asdict, replace
from typing import Literal

import pytest

from luftpause.core.model.ids import ModelName
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.sim.admission import TurnAdmission
from luftpause.testkit.sim.arms import ARMS, PIECES, WITHOUT, make_arm
from luftpause.testkit.sim.clients import SimRun, SimTurn, TurnPhase
from luftpause.testkit.sim.forwarding import Direct
from luftpause.testkit.sim.plans import MODEL, draw_plan
from luftpause.testkit.sim.setting import Setting, SimReplica, setting_of
from testkit.sim.worlds import crowd, group


class NotedPool:
    """Notes what was sent where. `down`: replicas that do not live."""

    def __init__(self) -> None:
        self.now = 0.0
        self.down: set[int] = set()
        self.sent: list[tuple[str, int]] = []
        self.wakes: list[float] = []

    def is_up(self, replica: int) -> bool:
        return replica not in self.down

    def send(self, turn: SimTurn, replica: int) -> None:
        turn.replica = turn.run.home = replica
        self.sent.append((turn.turn_id, replica))

    def cut(self, turn: SimTurn) -> None:
        raise AssertionError(turn.turn_id)

    def take_back(self, turn: SimTurn) -> bool:
        return False

    def refuse(self, turn: SimTurn) -> None:
        raise AssertionError(turn.turn_id)

    def load(self, replica: int) -> None:
        raise AssertionError(replica)

    def unload(self, replica: int) -> None:
        raise AssertionError(replica)

    def wake_at(self, at: float) -> None:
        self.wakes.append(at)

    @property
    def where(self) -> list[int]:
        return [replica for _, replica in self.sent]


def run_of(number: int, model: str = MODEL, service_class: ServiceClass = ServiceClass.BATCH) -> SimRun:
    plan = replace(draw_plan(group(), 1, number), model=ModelName(model), service_class=service_class)
    return SimRun(plan, 0.0)


def setting(replicas: int = 2) -> Setting:
    return setting_of(crowd(replicas=replicas))


def turn(key: int, run: SimRun | None = None) -> SimTurn:
    return SimTurn(run or run_of(key), key, 1, 0.0)


def test_direct_goes_round_whatever_happens() -> None:
    pool = NotedPool()
    arm = Direct(pool, setting(3))
    for key in range(5):
        arm.offered(turn(key))
    assert pool.where == [0, 1, 2, 0, 1]


def test_turn_admission_caps_what_queues_and_holds_the_rest() -> None:
    pool = NotedPool()
    arm = TurnAdmission(pool, setting(1), Limits(), checked=True)
    arm.probed(0, (1, 1, 0))
    one, two = turn(1), turn(2)
    arm.offered(one)
    arm.offered(two)
    assert pool.sent == [("sim.1", 0)]
    arm.spoke(one)
    arm.finished(one)
    assert pool.sent == [("sim.1", 0), ("sim.2", 0)]
    arm.failed(two, "429")
    for run in (one.run, two.run):
        arm.run_ended(run)
    arm.at_rest()
    assert pool.wakes == [600.0]


def test_turn_admission_takes_a_replica_that_is_down_for_unhealthy() -> None:
    pool = NotedPool()
    arm = TurnAdmission(pool, setting(), Limits(), checked=True)
    arm.probed(0, None)
    arm.probed(1, (0, 0, 0))
    for key in range(3):
        arm.offered(turn(key))
    arm.renewed()
    pool.now = 600.0
    arm.woke_up()
    assert pool.where == [1, 1, 1]
    with pytest.raises(AssertionError, match="never ended"):
        arm.at_rest()


@pytest.mark.parametrize("name", ARMS)
def test_every_arm_sends_a_turn_only_where_its_model_is(name: str) -> None:
    engine = crowd().engine
    models = (("small",), ("large", "small"), ("large",))
    places = tuple(SimReplica(engine=engine, models=tuple(map(ModelName, each))) for each in models)
    pool = NotedPool()
    arm = make_arm(name, pool, Setting(replicas=places), checked=False)
    for replica in range(3):
        arm.probed(replica, (0, 0, 0))
    for key, model in enumerate(["large", "small"] * 4):
        arm.offered(turn(key, run_of(key, model)))
    assert set(pool.where[::2]) == {1, 2}
    assert set(pool.where[1::2]) == {0, 1}


@pytest.mark.parametrize("name", [*ARMS, *WITHOUT])
def test_every_arm_can_be_made_by_its_name(name: str) -> None:
    make_arm(name, NotedPool(), setting(), checked=False).at_rest()


def test_each_switch_of_the_policy_that_is_on_is_taken_away_by_one_arm() -> None:
    whole = asdict(WorkingSetLimits())
    taken = [{name for name, value in asdict(limits).items() if value != whole[name]} for limits in PIECES.values()]
    assert all(len(names) == 1 for names in taken)
    switches = {name for name, value in whole.items() if value is True} | {"first_tokens", "recalls"}
    assert set().union(*taken) == switches


@pytest.mark.parametrize(
    ("arm", "queue", "told"),
    [
        ("working-set", "priority", (1, 3)),
        ("working-set", "fcfs", (0, 0)),
        ("working-set-without-priorities", "priority", (0, 0)),
        ("turn-admission", "priority", (0, 0)),
        ("vllm-router", "priority", (0, 0)),
    ],
)
def test_who_tells_engines_of_priorities_tells_those_that_look_at_them(
    arm: str, queue: Literal["fcfs", "priority"], told: tuple[int, int]
) -> None:
    pool = NotedPool()
    made = make_arm(arm, pool, Setting(replicas=(SimReplica(engine=EngineFigures(queue=queue)),)), checked=False)
    made.probed(0, (0, 0, 0))
    urgent, other = turn(1, run_of(1, service_class=ServiceClass.INTERACTIVE)), turn(2, run_of(2))
    for each in (urgent, other):
        made.offered(each)
    assert (urgent.priority, other.priority) == told


def test_there_is_no_other_arm() -> None:
    with pytest.raises(ValueError, match="no arm 'best'; there are direct, sglang-router, "):
        make_arm("best", NotedPool(), setting(), checked=False)


def test_runs_that_are_free_have_no_home_and_are_forgotten_turn_by_turn() -> None:
    pool = NotedPool()
    arm = TurnAdmission(pool, setting(), Limits(), checked=True, free=True)
    for replica in range(2):
        arm.probed(replica, (0, 0, 0))
    run = run_of(1)
    first = turn(1, run)
    arm.offered(first)
    arm.finished(first)
    assert not arm.state.runs
    arm.offered(turn(2))
    arm.offered(turn(3, run))
    assert pool.where == [0, 1, 0]


def test_a_scheduler_that_is_killed_learns_from_the_dataplane_what_runs_where() -> None:
    pool = NotedPool()
    arm = TurnAdmission(pool, setting(1), Limits(), checked=True)
    arm.probed(0, (1, 1, 0))
    sent, held = turn(1), turn(2)
    for each in (sent, held):
        arm.offered(each)
    sent.step(TurnPhase.SENT)
    assert pool.where == [0]
    arm.restarted()
    assert list(arm.state.turns) == [sent.turn_id]
    assert list(arm.state.held) == [held.turn_id]
    arm.probed(0, (0, 0, 0))
    assert pool.where == [0, 0]
