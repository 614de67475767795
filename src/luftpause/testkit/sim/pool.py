"""What stands on the two sides of an arm: the pool that it sees, and what it is told. Protocols only."""

from typing import Protocol

from luftpause.testkit.sim.clients import SimRun, SimTurn


class Pool(Protocol):
    """What an arm may see of the world and do to it."""

    @property
    def now(self) -> float:
        """The present, seconds since the beginning."""
        ...

    def is_up(self, replica: int) -> bool:
        """Say whether a replica lives."""
        ...

    def send(self, turn: SimTurn, replica: int) -> None:
        """Send a turn to an engine. Its end comes later, never from within this call."""
        ...

    def cut(self, turn: SimTurn) -> None:
        """Take a sent turn back from its engine: it fails. Its end comes later, never from within this call."""
        ...

    def take_back(self, turn: SimTurn) -> bool:
        """Take a sent turn back from its engine, as if it had never been sent; not once its answer has begun."""
        ...

    def refuse(self, turn: SimTurn) -> None:
        """Turn a turn away. Its agent hears of it later, never from within this call."""
        ...

    def load(self, replica: int) -> None:
        """Begin to load the engine of a replica that is down. There must be room."""
        ...

    def unload(self, replica: int) -> None:
        """Begin to stop the engine of a replica, or its load; it must have nothing to do."""
        ...

    def wake_at(self, at: float) -> None:
        """Call the arm's `woke_up` then."""
        ...


class Arm(Protocol):
    """Where agents offer their turns. Every method is told of what has just happened."""

    def offered(self, turn: SimTurn) -> None:
        """An agent offers a turn."""
        ...

    def spoke(self, turn: SimTurn, grown: int = 0) -> None:
        """A sent turn's answer has begun. `grown`: or it has so many tokens, which the arm wanted to hear of."""
        ...

    def finished(self, turn: SimTurn) -> None:
        """A sent turn was answered whole; its run stands at this turn still."""
        ...

    def failed(self, turn: SimTurn, cause: str) -> None:
        """A sent turn will not be answered."""
        ...

    def run_ended(self, run: SimRun) -> None:
        """A run will not come back."""
        ...

    def probed(self, replica: int, load: tuple[int, int, int] | None) -> None:
        """A replica was looked at: what it runs, queues and has read in this life, in tokens; None when it is down."""
        ...

    def loaded(self, replica: int) -> None:
        """The engine of a replica is ready."""
        ...

    def unloaded(self, replica: int) -> None:
        """The engine of a replica is gone."""
        ...

    def renewed(self) -> None:
        """It is time to say which turns are open."""
        ...

    def woke_up(self) -> None:
        """An instant that it asked for has come."""
        ...

    def restarted(self) -> None:
        """Whoever decides was killed and starts again with nothing but what dataplanes tell it."""
        ...

    def at_rest(self) -> None:
        """No run is left: nothing may be open any more, or AssertionError."""
        ...
