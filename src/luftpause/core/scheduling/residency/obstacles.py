"""What it takes to unload one model for another: nothing but a price, patience, or no price at all.

Turns in flight are never cut for others, and what waits for a model that is up is served first. But whoever has waited
for `max_wait_s` is owed a turn: then a model that has been up as long takes no new turns, not even those of runs that
are under way there, since an agent's run may go on for hours and nothing else bounds the wait. An interactive waiter
is owed that by a model that only batch uses as soon as that has been up for as long as the swap and the way back take:
swapping never takes more than half of the time. Runs that are expected back keep their model up as long as they
are back sooner than it and the other could be loaded, and nobody is owed anything.
"""

from math import ldexp
from typing import Final, NamedTuple

from immutables import Map

from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.residency.demand import Wish
from luftpause.core.scheduling.residency.leases import Returns
from luftpause.core.scheduling.residency.reasons import Obstacle
from luftpause.core.scheduling.residency.state import NOBODY, Absence, Model, ModelPhase, ResidencyLimits, Waiters
from luftpause.core.scheduling.state import Replica

LEASE_PRICE_S: Final = 1e6
"""On top of its load, for a model to which a run is expected back: it goes after all that nobody expects to use."""

DRAIN_PRICE_S: Final = 1e9
"""And for one that has turns in flight."""

IDLE_HALF_LIFE_S: Final = 600.0
"""Of what a model's load is worth while it is idle, where it has no TTL."""

LOOK_S_MIN: Final = 0.25
"""A run that is expected back any moment is looked for so often."""


class Hold(NamedTuple):
    """How firmly a model stays.

    Attributes:
        price_s: what its unloading costs.
        obstacle: None: it may be stopped now.
        may_drain: it may be let take no more turns.
        look_at: when this may be otherwise though nothing happens; None: not by time.
    """

    price_s: float
    obstacle: Obstacle | None = None
    may_drain: bool = False
    look_at: float | None = None


class Use(NamedTuple):
    """Who uses a model that may have to go.

    Attributes:
        replica: None while it is loading.
        waiting: for it.
        out: runs that are out on a tool and will ask it, but for those that wait for the wanted model themselves.
    """

    replica: Replica | None
    waiting: Waiters
    out: Map[Absence, int]


class Holds:
    """How firmly models stay when another one is wanted.

    Args:
        wanted: the other one.
        wish: by whom it is wanted.
        limits: what an operator may set.
        returns: when paused runs are back, seen now.
    """

    def __init__(self, wanted: Model, wish: Wish, limits: ResidencyLimits, returns: Returns) -> None:
        self._wanted = wanted
        self._wish = wish
        self._limits = limits
        self._returns = returns
        self._now = returns.now

    def of(self, model: Model, use: Use) -> Hold:
        """Return how firmly a model stays that is loading or up, and may have to go."""
        if model.phase is ModelPhase.LOADING:
            if use.waiting != NOBODY or self._wish.since is None:
                return Hold(0.0, Obstacle.LOADING)
            return self._unless_expected(model, use, self._now - model.since)
        fresh_until = model.up_since + self._limits.min_residency_s
        if self._now < fresh_until:
            return Hold(model.load_s, Obstacle.FRESH, look_at=fresh_until)
        flying = 0 if use.replica is None else use.replica.in_flight
        if model.phase is ModelPhase.DRAINING:
            return Hold(0.0, Obstacle.IN_USE if flying else None, may_drain=True)
        if flying or use.waiting != NOBODY:
            owed_at = self._owed_at(model, use)
            is_owed = owed_at is not None and owed_at <= self._now
            return Hold(DRAIN_PRICE_S + model.load_s, Obstacle.IN_USE, is_owed, None if is_owed else owed_at)
        return self._unless_expected(model, use, _worth_s(model, self._now))

    def _unless_expected(self, model: Model, use: Use, price_s: float) -> Hold:
        back_s = self._returns.first_back_s(use.out)
        if back_s is None:
            return Hold(price_s)
        price_s += LEASE_PRICE_S
        look_at = self._now + max(LOOK_S_MIN, back_s)
        if self._wish.since is None:
            return Hold(price_s, Obstacle.EXPECTED, look_at=look_at)
        owed_at = self._wish.since + self._limits.max_wait_s
        if owed_at <= self._now or back_s > model.load_s + self._wanted.load_s:
            return Hold(price_s)
        return Hold(price_s, Obstacle.EXPECTED, look_at=min(owed_at, look_at))

    def _owed_at(self, model: Model, use: Use) -> float | None:
        """Return when a waiter may keep new turns from a model that is used; None: never."""
        wish, replica = self._wish, use.replica
        if wish.since is None:
            return None
        only_batch = replica is not None and replica.batch == replica.in_flight and not replica.kept
        if wish.is_urgent and only_batch and not use.waiting.interactive:
            return model.up_since + max(self._limits.min_residency_s, model.load_s + self._wanted.load_s)
        return max(wish.since, model.up_since) + self._limits.max_wait_s


def _worth_s(model: Model, now: Instant) -> float:
    """Return what its load is worth, seconds: less and less the longer nobody uses it."""
    half_lives = max(0.0, now - model.used_at) / (model.spec.ttl_s or IDLE_HALF_LIFE_S)
    return ldexp(model.load_s, -int(min(half_lives, 60.0))) * (1.0 - (half_lives % 1.0) / 2)
