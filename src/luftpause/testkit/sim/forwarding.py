"""The arms that send every turn on at once, as load balancers do: `direct` and `router`. They know turns, not runs."""

from collections.abc import Iterator
from itertools import cycle

from luftpause.core.model.ids import ModelName
from luftpause.testkit.sim.clients import SimRun, SimTurn
from luftpause.testkit.sim.pool import Pool
from luftpause.testkit.sim.setting import Setting


class Forwarding:
    """What arms without a memory of runs have in common: they hear of most things and do nothing."""

    def __init__(self, pool: Pool, setting: Setting) -> None:
        self.pool = pool
        self.setting = setting
        self.in_flight = [0] * len(setting.replicas)

    def send(self, turn: SimTurn, replica: int) -> None:
        """Send a turn on."""
        self.in_flight[replica] += 1
        self.pool.send(turn, replica)

    def first_token(self, turn: SimTurn) -> None:
        """Pass it on."""

    def finished(self, turn: SimTurn) -> None:
        """One turn fewer."""
        self.in_flight[turn.replica] -= 1

    def failed(self, turn: SimTurn, cause: str) -> None:
        """One turn fewer."""
        self.in_flight[turn.replica] -= 1

    def run_ended(self, run: SimRun) -> None:
        """It never knew the run."""

    def probed(self, replica: int, load: tuple[int, int] | None) -> None:
        """It does not look."""

    def loaded(self, replica: int) -> None:
        """It orders none."""

    def unloaded(self, replica: int) -> None:
        """It orders none."""

    def renewed(self) -> None:
        """It keeps no deadlines."""

    def woke_up(self) -> None:
        """It keeps no deadlines."""

    def at_rest(self) -> None:
        """Check that every turn that was sent has ended."""
        assert not any(self.in_flight), f"turns in flight at rest: {self.in_flight}"


class Direct(Forwarding):
    """Round robin among the replicas of a model, whatever happens."""

    def __init__(self, pool: Pool, setting: Setting) -> None:
        super().__init__(pool, setting)
        self._rounds: dict[ModelName, Iterator[int]] = {}

    def offered(self, turn: SimTurn) -> None:
        """Send it to the next replica in turn."""
        model = turn.run.plan.model
        if model not in self._rounds:
            self._rounds[model] = cycle(self.setting.serving(model))
        self.send(turn, next(self._rounds[model]))


class Router(Forwarding):
    """A cache-aware router: a run stays where it was; a new one, or any when loads are too unequal, goes to the least.

    Loads are its own turns in flight. Replicas that are down are left out.
    """

    def offered(self, turn: SimTurn) -> None:
        """Send it where its prefix probably is."""
        pool, loads = self.pool, self.in_flight
        serving = self.setting.serving(turn.run.plan.model)
        alive = [replica for replica in serving if pool.is_up(replica)] or serving
        least = min(alive, key=lambda replica: (loads[replica], replica))
        most = max(loads[replica] for replica in alive)
        figures = self.setting.router
        lopsided = most - loads[least] > figures.balance_abs and most > figures.balance_rel * loads[least]
        home = turn.run.home
        self.send(turn, least if home is None or home not in alive or lopsided else home)
