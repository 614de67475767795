"""The arm `llama-swap`, on a pool that only notes what it does."""

from dataclasses import replace

from luftpause.core.model.ids import ModelName
from luftpause.testkit.engine_model.figures import EngineFigures
from luftpause.testkit.sim.clients import SimRun, SimTurn
from luftpause.testkit.sim.plans import draw_plan
from luftpause.testkit.sim.setting import Launch, Setting, SimReplica
from luftpause.testkit.sim.swap import Swap
from testkit.sim.worlds import group


class NotedPool:
    """Notes orders, in words."""

    def __init__(self) -> None:
        self.now = 0.0
        self.done: list[str] = []

    def is_up(self, replica: int) -> bool:
        raise AssertionError(replica)

    def send(self, turn: SimTurn, replica: int) -> None:
        turn.replica = replica
        self.done.append(f"{turn.key} to {replica}")

    def cut(self, turn: SimTurn) -> None:
        raise AssertionError(turn.turn_id)

    def take_back(self, turn: SimTurn) -> bool:
        return False

    def refuse(self, turn: SimTurn) -> None:
        raise AssertionError(turn.turn_id)

    def load(self, replica: int) -> None:
        self.done.append(f"load {replica}")

    def unload(self, replica: int) -> None:
        self.done.append(f"unload {replica}")

    def wake_at(self, at: float) -> None:
        raise AssertionError(at)

    def take(self) -> list[str]:
        done, self.done = self.done, []
        return done


def setting(*memory: int, budget: int = 10) -> Setting:
    replicas = tuple(
        SimReplica(
            engine=EngineFigures(),
            models=(ModelName(f"m{at}"),),
            launch=Launch(memory=each, load_s=1.0, stop_s=0.0),
        )
        for at, each in enumerate(memory)
    )
    return Setting(replicas=replicas, memory=budget)


def turn(key: int, model: int) -> SimTurn:
    plan = replace(draw_plan(group(), 1, key), model=ModelName(f"m{model}"))
    return SimTurn(SimRun(plan, 0.0), key, 1, 0.0)


def test_turns_for_the_model_that_is_up_pass_those_that_wait() -> None:
    pool = NotedPool()
    arm = Swap(pool, setting(6, 6))
    first = turn(1, 0)
    arm.offered(first)
    assert pool.take() == ["load 0"]
    arm.loaded(0)
    arm.offered(turn(2, 1))
    third = turn(3, 0)
    arm.offered(third)
    assert pool.take() == ["1 to 0", "3 to 0"]
    arm.finished(first)
    assert pool.take() == []
    arm.finished(third)
    assert pool.take() == ["unload 0"]
    arm.unloaded(0)
    arm.loaded(1)
    assert pool.take() == ["load 1", "2 to 1"]


def test_what_fits_beside_is_loaded_beside_and_the_fewest_go() -> None:
    pool = NotedPool()
    arm = Swap(pool, setting(4, 3, 6))
    one, two = turn(1, 0), turn(2, 1)
    arm.offered(one)
    arm.offered(two)
    assert pool.take() == ["load 0", "load 1"]
    arm.loaded(0)
    arm.loaded(1)
    arm.failed(one, "429")
    arm.offered(turn(3, 2))
    assert pool.take() == ["1 to 0", "2 to 1", "unload 0"]
    arm.finished(two)
    arm.unloaded(0)
    assert pool.take() == ["load 2"]
