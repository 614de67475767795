"""The gateway with slots and classes."""

from dataclasses import replace

from luftpause.core.model.turns import ServiceClass
from luftpause.testkit.sim.clients import SimRun, SimTurn, TurnPhase
from luftpause.testkit.sim.plans import draw_plan
from luftpause.testkit.sim.priority_gateway import QUEUE_S, PriorityGateway
from luftpause.testkit.sim.scenario import RouterFigures
from luftpause.testkit.sim.setting import Setting
from testkit.sim.test_arms import NotedPool, setting
from testkit.sim.worlds import group


class CuttingPool(NotedPool):
    """Also notes what was cut and refused."""

    def __init__(self) -> None:
        super().__init__()
        self.cuts: list[int] = []
        self.refused: list[int] = []

    def send(self, turn: SimTurn, replica: int) -> None:
        turn.step(TurnPhase.SENT)
        super().send(turn, replica)

    def cut(self, turn: SimTurn) -> None:
        self.cuts.append(turn.key)

    def refuse(self, turn: SimTurn) -> None:
        self.refused.append(turn.key)


def tight(slots: int, reserved: float) -> Setting:
    return replace(setting(1), router=RouterFigures(slots=slots, reserved=reserved))


def turn(key: int, service_class: ServiceClass = ServiceClass.BATCH, at: float = 0.0) -> SimTurn:
    plan = replace(draw_plan(group(), 1, key), service_class=service_class)
    return SimTurn(SimRun(plan, at), key, 1, at)


def test_batch_leaves_the_reserve_alone_and_waits_for_the_rest() -> None:
    pool = CuttingPool()
    arm = PriorityGateway(pool, tight(4, 0.25))
    turns = [turn(key) for key in range(4)]
    for each in turns:
        arm.offered(each)
    assert [name for name, _ in pool.sent] == ["sim.0", "sim.1", "sim.2"]
    arm.offered(turn(9, ServiceClass.INTERACTIVE))
    assert pool.sent[-1][0] == "sim.9"
    arm.finished(turns[0])
    assert pool.sent[-1][0] == "sim.3"


def test_an_interactive_request_takes_the_slot_of_the_youngest_batch_request_without_a_first_token() -> None:
    pool = CuttingPool()
    arm = PriorityGateway(pool, tight(3, 0.0))
    turns = [turn(key) for key in range(3)]
    for each in turns:
        arm.offered(each)
    arm.spoke(turns[2])
    arm.offered(turn(7, ServiceClass.INTERACTIVE))
    assert pool.cuts == [1]
    arm.failed(turns[1], "cut")
    assert pool.sent[-1][0] == "sim.7"


def test_a_batch_request_that_starves_goes_first_and_one_that_waits_too_long_is_refused() -> None:
    pool = CuttingPool()
    arm = PriorityGateway(pool, tight(1, 0.0))
    running = turn(0, ServiceClass.INTERACTIVE)
    arm.offered(running)
    arm.offered(turn(1))
    pool.now = 200.0
    arm.offered(turn(2, ServiceClass.INTERACTIVE, at=200.0))
    arm.finished(running)
    assert pool.sent[-1][0] == "sim.1"
    pool.now = 200.0 + QUEUE_S[ServiceClass.INTERACTIVE]
    arm.woke_up()
    assert pool.refused == [2]
