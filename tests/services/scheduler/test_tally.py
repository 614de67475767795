from luftpause.core.model.ids import ReplicaId, RunId, TurnId
from luftpause.core.model.turns import ServiceClass, Usage
from luftpause.core.scheduling.actions import ForgetRun, PlaceTurn
from luftpause.core.scheduling.reasons import PlacedBecause
from luftpause.services.scheduler.tally import DecisionTally


def test_decisions_are_counted_by_time_and_orders_by_kind() -> None:
    tally = DecisionTally()
    forget = ForgetRun(run=RunId("r"), why="ended")
    for seconds, orders in ((0.000009, ()), (0.00001, (forget, forget)), (0.004, (forget,)), (7.0, ())):
        tally.decided(seconds, orders)

    counted = dict(tally.seconds.buckets())
    assert [counted[bound] for bound in ("1e-05", "2.5e-05", "0.0025", "0.005", "0.1", "+Inf")] == [2, 2, 2, 3, 3, 4]
    assert tally.orders == {ForgetRun: 3}
    assert tally.faults == 0


def test_reasons_are_counted_by_kind_and_tokens_by_class() -> None:
    tally = DecisionTally()
    for why in (PlacedBecause.HOME, PlacedBecause.LEAST_LOADED, PlacedBecause.HOME):
        tally.decided(0.0, (PlaceTurn(turn=TurnId("t"), run=RunId("r"), replica=ReplicaId("a"), why=why, held_s=0.0),))
    tally.used(ServiceClass.BATCH, Usage(prompt_tokens=9, completion_tokens=2, cached_tokens=5))
    tally.used(ServiceClass.BATCH, Usage(prompt_tokens=1, completion_tokens=2))

    assert tally.orders == {PlaceTurn: 3}
    assert tally.reasons == {PlaceTurn: {PlacedBecause.HOME: 2, PlacedBecause.LEAST_LOADED: 1}}
    spent = {"prompt_cached": 5, "prompt_computed": 4, "prompt_unknown": 1, "completion": 4}
    assert tally.tokens == {ServiceClass.BATCH: spent}
