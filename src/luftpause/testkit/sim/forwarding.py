"""What arms have in common that send every turn on at once, as load balancers do; and `direct`, the simplest."""

from collections.abc import Iterator, Sequence
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

    def spoke(self, turn: SimTurn, grown: int = 0) -> None:
        """Pass it on."""

    def finished(self, turn: SimTurn) -> None:
        """One turn fewer."""
        self.in_flight[turn.replica] -= 1

    def failed(self, turn: SimTurn, cause: str) -> None:
        """One turn fewer."""
        self.in_flight[turn.replica] -= 1

    def run_ended(self, run: SimRun) -> None:
        """It never knew the run."""

    def probed(self, replica: int, load: tuple[int, int, int] | None) -> None:
        """It does not look."""

    def loaded(self, replica: int) -> None:
        """It orders none."""

    def unloaded(self, replica: int) -> None:
        """It orders none."""

    def renewed(self) -> None:
        """It keeps no deadlines."""

    def woke_up(self) -> None:
        """It keeps no deadlines."""

    def restarted(self) -> None:
        """It has no scheduler that could be killed."""

    def at_rest(self) -> None:
        """Check that every turn that was sent has ended."""
        assert not any(self.in_flight), f"turns in flight at rest: {self.in_flight}"


def alive(pool: Pool, setting: Setting, turn: SimTurn) -> Sequence[int]:
    """Return the replicas that serve a turn's model and live; all of them while none lives."""
    serving = setting.serving(turn.run.plan.model)
    return [replica for replica in serving if pool.is_up(replica)] or serving


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
