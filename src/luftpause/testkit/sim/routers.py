"""The arms that route as other people's routers do, each written after the behaviour of the one that it is named for.

They know requests, not runs, and send each one on at once. What they go by is what their originals go by: the text of
the prompt, or a key in a header that the bench sends for every run. Loads are their own requests in flight.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from luftpause.testkit.sim.clients import SimRun, SimTurn
from luftpause.testkit.sim.dice import Dice
from luftpause.testkit.sim.forwarding import Forwarding, alive
from luftpause.testkit.sim.pool import Pool
from luftpause.testkit.sim.setting import Setting

CACHE_THRESHOLD: Final = 0.3
BALANCE_ABS: Final = 64
BALANCE_REL: Final = 1.5
"""sglang-router's own defaults."""


class CacheAware(Forwarding):
    """sglang-router's `cache_aware`.

    Loads that differ by more than `balance_abs` and by more than BALANCE_REL times send a request to the least loaded
    replica. Otherwise it goes where the longest beginning of its text went before, if that is more than CACHE_THRESHOLD
    of it, else to the least loaded. Read in its source (sgl-model-gateway, `policies/cache_aware.rs`, as of wheel
    0.3.2). Left out: that a whole prompt is asked for characters, of which ours has as many a token everywhere, and
    the eviction of its trees, which hold far more than a bench sends.
    """

    def __init__(self, pool: Pool, setting: Setting, balance_abs: int = BALANCE_ABS) -> None:
        super().__init__(pool, setting)
        self._balance_abs = balance_abs
        self._shared: dict[str, int] = {}

    def offered(self, turn: SimTurn) -> None:
        """Send it where its prefix probably is."""
        there = alive(self.pool, self.setting, turn)
        least = min(there, key=lambda replica: (self.in_flight[replica], replica))
        most = max(self.in_flight[replica] for replica in there)
        load = self.in_flight[least]
        lopsided = most - load > self._balance_abs and most > BALANCE_REL * load
        known = None if lopsided else self._match(turn)
        replica = least if known is None or known not in there else known
        plan = turn.run.plan
        if plan.shared_tokens:
            self._shared[plan.shared_name] = replica
        self.send(turn, replica)

    def _match(self, turn: SimTurn) -> int | None:
        """Return where enough of the prompt went before. A run's own conversation went where its last turn went."""
        run, plan = turn.run, turn.run.plan
        own = run.prompt_tokens_before
        if run.home is not None and own > CACHE_THRESHOLD * turn.prompt_tokens:
            return run.home
        if plan.shared_tokens > CACHE_THRESHOLD * turn.prompt_tokens:
            return self._shared.get(plan.shared_name)
        return None


class Manual(Forwarding):
    """sglang-router's `manual` with `--assignment-mode min_load`, keyed by run.

    A key stays where it was; a new one, or one whose replica is down, goes to the least loaded, by lot among equals.
    Read in its source (sgl-model-gateway, `policies/manual.rs`). Left out: that a key remembers two replicas.
    """

    def __init__(self, pool: Pool, setting: Setting) -> None:
        super().__init__(pool, setting)
        self._dice = Dice("manual")

    def offered(self, turn: SimTurn) -> None:
        """Send it where its run is."""
        there, home = alive(self.pool, self.setting, turn), turn.run.home
        self.send(turn, home if home is not None and home in there else self._assign(there))

    def _assign(self, there: Sequence[int]) -> int:
        load = min(self.in_flight[replica] for replica in there)
        equals = [replica for replica in there if self.in_flight[replica] == load]
        return equals[self._dice.whole(0, len(equals) - 1)] if len(equals) > 1 else equals[0]


class StickyLeastLoaded(Forwarding):
    """vllm-router's `sticky_least_loaded`, keyed by run.

    A session stays where it was; a new one goes to the replica with the fewest sessions, by a hash of its name among
    equals. Read in its source (vllm-project/router, `policies/sticky_least_loaded.rs`). Sessions last two hours unless
    somebody says that they are over, which no harness does: so sessions are counted that nobody uses any more.
    """

    def __init__(self, pool: Pool, setting: Setting) -> None:
        super().__init__(pool, setting)
        self._sessions: Counter[int] = Counter()
        self._replica: dict[str, int] = {}

    def offered(self, turn: SimTurn) -> None:
        """Send it where its session is."""
        there, run = alive(self.pool, self.setting, turn), turn.run.run_id
        replica = self._replica.get(run)
        if replica is None or replica not in there:
            if replica is not None:
                self._sessions[replica] -= 1
            replica = self._assign(run, there)
            self._replica[run] = replica
            self._sessions[replica] += 1
        self.send(turn, replica)

    def _assign(self, run: str, there: Sequence[int]) -> int:
        fewest = min(self._sessions[replica] for replica in there)
        equals = [replica for replica in there if self._sessions[replica] == fewest]
        return max(equals, key=lambda replica: Dice(f"session {run} {replica}").unit())

    def run_ended(self, run: SimRun) -> None:
        """Nobody tells it."""
