"""Case 7: a time to live against a new turn, a thousand times around the same instant; case 24: rounds of both."""

import random

import pytest

from core.scheduling.builders import World, arrived, finished
from core.scheduling.residency.words import down, joined, model, up
from luftpause.core.model.ids import ModelName, ReplicaId
from luftpause.core.scheduling.actions import Action, PlaceTurn
from luftpause.core.scheduling.decide import next_deadline
from luftpause.core.scheduling.events import Event, RunEnded, WokeUp
from luftpause.core.scheduling.residency.actions import LoadModel, UnloadModel
from luftpause.core.scheduling.residency.state import ModelPhase

A = ModelName("A")
TTL_S = 1.0


class Launcher:
    """Does as it is told, a little later; there is never a second engine."""

    def __init__(self, dice: random.Random) -> None:
        self.world = World()
        self.dice = dice
        self.alive = 0
        self.due: list[tuple[float, Event]] = []
        self.loads = 0
        self.served: list[str] = []
        self.tell(joined(model("A", ttl=TTL_S)))

    def tell(self, event: Event) -> None:
        for action in self.world.tell(event):
            self.obey(action)

    def obey(self, action: Action) -> None:
        match action:
            case LoadModel():
                self.alive += 1
                self.loads += 1
                assert self.alive == 1, "two engines of one model"
                self.due.append((self.world.now + self.dice.choice([0.0, 0.1, 0.5]), up("A")))
            case UnloadModel():
                assert self.alive == 1, "nothing of it runs"
                assert not self.world.state.turns, "a turn is in flight"
                self.due = [(self.world.now + self.dice.choice([0.0, 0.1, 0.5]), down("A"))]
            case PlaceTurn(turn=turn):
                self.served.append(turn)
            case _:
                pass

    def until(self, at: float, *, before: bool = False) -> None:
        """Let time pass; what is due at one instant happens in an order that is drawn.

        `before`: what is due at the very end is left for later.
        """
        while True:
            deadline = next_deadline(self.world.state)
            ready = [(when, event) for when, event in self.due if when < at or (when == at and not before)]
            is_due = deadline is not None and (deadline < at or (deadline == at and not before))
            ready += [(deadline, WokeUp())] if deadline is not None and is_due else []
            if not ready:
                break
            first = min(when for when, _ in ready)
            when, event = self.dice.choice([each for each in ready if each[0] == first])
            self.world.later(max(0.0, when - self.world.now))
            if (when, event) in self.due:
                self.due.remove((when, event))
                self.alive -= event == down("A")
            self.tell(event)
        self.world.later(max(0.0, at - self.world.now))


@pytest.mark.parametrize("first", range(0, 1000, 50))
def test_a_turn_around_the_instant_of_the_unload_is_served_and_there_is_one_engine_at_most(first: int) -> None:
    loads = {live_three_times(seed) for seed in range(first, first + 50)}
    assert {1, 3} <= loads, "some were served by the engine that was there, some by another one"


def live_three_times(seed: int) -> int:
    """Let a model be used, fall idle, and be asked for again just as it is unloaded, or just before or after.

    At the very instant the turn comes first, or the clock. Return how many loads that took.
    """
    box = Launcher(random.Random(seed))
    at = 0.0
    for number in range(3):
        turn = f"t{number}"
        box.tell(arrived(turn, model="A"))
        box.until(at + 2.0)
        assert turn in box.served, f"seed {seed}: {turn} is not served"
        box.tell(finished(turn))
        at += 3.0 + box.dice.choice([-0.25, -0.0625, 0.0, 0.0, 0.0625, 0.25])
        box.until(at, before=box.dice.random() < 0.5)
        if box.dice.random() < 0.5:
            box.tell(WokeUp())
    box.until(at + 10.0)
    assert box.alive == 0
    assert box.world.state.residency.models[A].phase is ModelPhase.DOWN
    return box.loads


def test_a_thousand_rounds_of_loading_and_unloading_leave_everything_as_it_was() -> None:
    box = Launcher(random.Random(1))
    sizes = set()
    for number in range(1000):
        box.tell(arrived(f"t{number}", f"r{number}", model="A"))
        box.until(float(box.world.now) + 1.0)
        box.tell(finished(f"t{number}", tools=["look"]))
        box.tell(RunEnded(run=arrived("t", f"r{number}").run))
        box.until(float(box.world.now) + 3.0)
        state = box.world.state
        assert not state.replicas.get(ReplicaId("box/A"))
        sizes.add((len(state.replicas), len(state.serving), len(state.runs), len(state.residency.of_replica)))
        sizes.add((len(state.lanes), len(state.queue_bits), len(state.standings.of), len(state.turns)))
    assert sizes == {(0, 0, 0, 0)}
