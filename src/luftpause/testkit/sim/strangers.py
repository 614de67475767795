"""Requests that others send to an engine past the router, as the engine sees them. Nobody waits for their answers here.

A stranger sends its next request as soon as the one before is over, each with a prompt that nobody has asked before.
"""

from typing import Final

from luftpause.testkit.engine_model.sequence import Request
from luftpause.testkit.sim.dice import Dice
from luftpause.testkit.sim.scenario import Strangers

AGAIN_S: Final = 1.0
"""So long after it found no engine a stranger tries again."""


class Stranger:
    """One of them. Its requests have keys below zero, each stranger other ones."""

    def __init__(self, number: int, all_together: int, table: Strangers, seed: int) -> None:
        self.replica = table.replica
        self.until_s = table.at_s + table.for_s
        self._table = table
        self._name = f"stranger {seed} {number}"
        self._key = -1 - number
        self._step = all_together

    def asks(self) -> Request:
        """Return its next request."""
        key, table = self._key, self._table
        self._key -= self._step
        dice = Dice(f"{self._name} {key}")
        return Request(
            key=key,
            prompt=((f"{self._name} {key}", dice.whole(*table.context_tokens)),),
            reply_tokens=dice.whole(*table.reply_tokens),
            reply_tokens_max=table.reply_tokens[1],
        )


def strangers_of(tables: tuple[Strangers, ...], seed: int) -> list[tuple[float, Stranger]]:
    """Return all of them, each with when it begins."""
    each = [table for table in tables for _ in range(table.count)]
    return [(table.at_s, Stranger(number, len(each), table, seed)) for number, table in enumerate(each)]
