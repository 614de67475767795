"""The workers that serve one door together, as one of them sees the others."""

from collections.abc import Callable
from typing import Protocol

from luftpause.telemetry.exposition import Counts


class CrewAwayError(Exception):
    """Nobody says what the others counted: whoever holds the workers together does not answer."""


class Crew(Protocol):
    """All workers of a door, this one included."""

    def shows(self, own: Callable[[], Counts]) -> None:
        """Say how this worker's counts are read; it is asked for them whenever somebody asks any worker."""
        ...

    async def counts(self) -> Counts:
        """Return what all workers counted together, those that ended included.

        Raises:
            CrewAwayError: the others cannot be asked.
        """
        ...
