from luftpause.core.model.ids import RunId
from luftpause.core.scheduling.actions import ForgetRun
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
