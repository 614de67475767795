"""The arms that send every turn on at once, as load balancers do: `direct` and `router`. They know turns, not runs."""

from collections.abc import Iterator
from itertools import cycle

from luftpause.core.model.ids import ModelName
from luftpause.testkit.sim.clients import SimRun, SimTurn
from luftpause.testkit.sim.pool import Pool
from luftpause.testkit.sim.setting import Setting


class _Forwarding:
    """What arms without a memory of runs have in common: they hear of most things and do nothing."""

    def __init__(self, pool: Pool, setting: Setting) -> None:
        self._pool = pool
        self._setting = setting
        self._in_flight = [0] * len(setting.replicas)

    def _send(self, turn: SimTurn, replica: int) -> None:
        self._in_flight[replica] += 1
        self._pool.send(turn, replica)

    def first_token(self, turn: SimTurn) -> None:
        """Pass it on."""

    def finished(self, turn: SimTurn) -> None:
        """One turn fewer."""
        self._in_flight[turn.replica] -= 1

    def failed(self, turn: SimTurn, cause: str) -> None:
        """One turn fewer."""
        self._in_flight[turn.replica] -= 1

    def run_ended(self, run: SimRun) -> None:
        """It never knew the run."""

    def probed(self, replica: int, load: tuple[int, int] | None) -> None:
        """It does not look."""

    def renewed(self) -> None:
        """It keeps no deadlines."""

    def woke_up(self) -> None:
        """It keeps no deadlines."""

    def at_rest(self) -> None:
        """Check that every turn that was sent has ended."""
        assert not any(self._in_flight), f"turns in flight at rest: {self._in_flight}"


class Direct(_Forwarding):
    """Round robin among the replicas of a model, whatever happens."""

    def __init__(self, pool: Pool, setting: Setting) -> None:
        super().__init__(pool, setting)
        self._rounds: dict[ModelName, Iterator[int]] = {}

    def offered(self, turn: SimTurn) -> None:
        """Send it to the next replica in turn."""
        model = turn.run.plan.model
        if model not in self._rounds:
            self._rounds[model] = cycle(self._setting.serving(model))
        self._send(turn, next(self._rounds[model]))


class Router(_Forwarding):
    """A cache-aware router: a run stays where it was; a new one, or any when loads are too unequal, goes to the least.

    Loads are its own turns in flight. Replicas that are down are left out.
    """

    def offered(self, turn: SimTurn) -> None:
        """Send it where its prefix probably is."""
        pool, loads = self._pool, self._in_flight
        serving = self._setting.serving(turn.run.plan.model)
        alive = [replica for replica in serving if pool.is_up(replica)] or serving
        least = min(alive, key=lambda replica: (loads[replica], replica))
        most = max(loads[replica] for replica in alive)
        figures = self._setting.router
        lopsided = most - loads[least] > figures.balance_abs and most > figures.balance_rel * loads[least]
        home = turn.run.home
        self._send(turn, least if home is None or home not in alive or lopsided else home)
