"""How firmly a model stays, case by case."""

from dataclasses import replace

from immutables import Map

from luftpause.core.model.ids import Instant, LauncherId, ModelName, ReplicaId, TurnId
from luftpause.core.model.models import ModelSpec
from luftpause.core.scheduling.residency.demand import Wish
from luftpause.core.scheduling.residency.leases import Returns
from luftpause.core.scheduling.residency.obstacles import DRAIN_PRICE_S, LEASE_PRICE_S, Hold, Holds, Use
from luftpause.core.scheduling.residency.reasons import Obstacle
from luftpause.core.scheduling.residency.state import (
    NO_TOOL,
    NOBODY,
    Model,
    ModelPhase,
    ResidencyLimits,
    Waiters,
)
from luftpause.core.scheduling.state import Replica
from luftpause.core.scheduling.tool_history import Tools

LIMITS = ResidencyLimits(max_wait_s=30.0, min_residency_s=5.0, unknown_tool_s=10.0)
REPLICA = Replica(replica=ReplicaId("r"), spec=None, declared=True, order=0, epoch=0)
IDLE = Use(replica=REPLICA, waiting=NOBODY, out=Map())
WISH = Wish((True, 0, 0.0, 0), ModelName("wanted"), TurnId("t"), 95.0, True)
ASKED = Wish((True, 2, 0.0, 0), ModelName("wanted"))
SOMEBODY = Waiters(interactive=(((99.0, 1, TurnId("x")),),))


def known(name: str = "up", phase: ModelPhase = ModelPhase.UP, *, up_since: float = 0.0, load_s: float = 2.0) -> Model:
    return Model(
        spec=ModelSpec(model=ModelName(name)),
        launcher=LauncherId("box"),
        order=0,
        memory=1,
        load_s=load_s,
        phase=phase,
        up_since=Instant(up_since),
        used_at=Instant(100.0),
        since=Instant(90.0),
    )


def hold(use: Use = IDLE, model: Model | None = None, wish: Wish = WISH, now: float = 100.0) -> Hold:
    returns = Returns(Tools(), LIMITS, Instant(now))
    return Holds(known("wanted"), wish, LIMITS, returns).of(model or known(), use)


def test_what_nobody_uses_costs_its_load_and_less_the_longer_it_is_idle() -> None:
    assert hold() == Hold(2.0)
    assert hold(now=700.0).price_s == 1.0
    assert 1.0 < hold(now=400.0).price_s < 2.0
    assert hold(now=1e9).price_s < 1e-9


def test_what_has_only_just_been_loaded_stays() -> None:
    assert hold(model=known(up_since=98.0)) == Hold(2.0, Obstacle.FRESH, look_at=103.0)


def test_a_load_that_nobody_waits_for_may_be_cut_short_but_not_for_an_operator() -> None:
    loading = known(phase=ModelPhase.LOADING)
    assert hold(Use(None, NOBODY, Map()), loading) == Hold(10.0)
    assert hold(Use(None, SOMEBODY, Map()), loading).obstacle is Obstacle.LOADING
    assert hold(Use(None, NOBODY, Map()), loading, ASKED).obstacle is Obstacle.LOADING


def test_turns_in_flight_are_ended_first_and_new_ones_kept_away_once_the_waiter_is_owed_that() -> None:
    busy = IDLE._replace(replica=REPLICA._replace(in_flight=1))
    assert hold(busy) == Hold(DRAIN_PRICE_S + 2.0, Obstacle.IN_USE, look_at=125.0)
    assert hold(busy, now=125.0) == Hold(DRAIN_PRICE_S + 2.0, Obstacle.IN_USE, may_drain=True)
    assert hold(IDLE._replace(waiting=SOMEBODY)).obstacle is Obstacle.IN_USE
    assert hold(busy, wish=ASKED, now=1e6) == Hold(DRAIN_PRICE_S + 2.0, Obstacle.IN_USE)
    assert hold(busy, known(up_since=110.0), now=130.0).look_at == 140.0


def test_what_drains_already_is_the_first_to_go() -> None:
    draining = known(phase=ModelPhase.DRAINING)
    assert hold(IDLE, draining) == Hold(0.0, may_drain=True)
    busy = IDLE._replace(replica=REPLICA._replace(in_flight=1))
    assert hold(busy, draining) == Hold(0.0, Obstacle.IN_USE, may_drain=True)


def test_an_interactive_waiter_is_owed_a_model_that_only_batch_uses_as_soon_as_the_swap_has_paid() -> None:
    batch = IDLE._replace(replica=REPLICA._replace(in_flight=2, batch=2))
    assert hold(batch).may_drain
    assert not hold(batch, known(up_since=94.0, load_s=9.0)).may_drain
    mixed = IDLE._replace(replica=REPLICA._replace(in_flight=2, batch=1))
    assert not hold(mixed).may_drain
    out = IDLE._replace(replica=REPLICA._replace(in_flight=2, batch=2, kept=1))
    assert not hold(out).may_drain
    assert not hold(batch._replace(waiting=SOMEBODY)).may_drain
    assert not hold(batch, wish=WISH._replace(is_urgent=False)).may_drain


def test_a_run_that_is_back_before_both_are_loaded_keeps_its_model_until_the_waiter_is_owed_it() -> None:
    out = IDLE._replace(out=Map({(NO_TOOL, 400): 1}))
    slow = known(load_s=20.0)
    assert hold(out) == Hold(LEASE_PRICE_S + 2.0)
    assert hold(out, slow) == Hold(LEASE_PRICE_S + 20.0, Obstacle.EXPECTED, look_at=110.0)
    assert hold(out, slow, now=125.0).obstacle is None
    assert hold(out, wish=ASKED).obstacle is Obstacle.EXPECTED


def test_a_model_with_a_time_to_live_loses_its_worth_in_that() -> None:
    short = known()
    short = short._replace(spec=replace(short.spec, ttl_s=60.0))
    assert hold(model=short, now=160.0).price_s == 1.0
