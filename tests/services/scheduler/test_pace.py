"""A guess at how long held turns wait still."""

import pytest

from luftpause.core.model.ids import CallerId, Instant, ModelName, ReplicaId
from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.reasons import HoldReason, ModelLoading, WaitingForRoom
from luftpause.core.scheduling.view import HeldView
from luftpause.services.scheduler.pace import LOOKED_BACK_S, Pace
from services.scheduler.running import crowd, offer, probed, run, spec
from services.scheduler.watched import Clock, watched

pytestmark = pytest.mark.interpreted  # its clock inherits from the service

ROOM = WaitingForRoom(replica=ReplicaId("a"), in_flight=1, capacity=1)
NOW, LATER = ServiceClass.INTERACTIVE, ServiceClass.BATCH


def row(service_class: ServiceClass, count: int = 1, reason: HoldReason = ROOM) -> HeldView:
    return HeldView(service_class=service_class, caller=CallerId("c"), count=count, oldest_s=1, reason=reason)


def granted(service: Clock, turn: str) -> None:
    """Have a turn held, and placed a moment later."""
    crowd(service)
    service.admit(offer(turn, run=turn))
    service.after(0.001)
    service.probed(probed("a", running=0, waiting=0))


def test_the_first_of_each_row_goes_at_the_pace_seen_lately_interactive_before_batch() -> None:
    async def tell() -> None:
        pace = Pace()
        service, _ = watched(spec("a"))
        service.watch(pace)
        for number in range(5):
            granted(service, f"t{number}")
            service.after(2)
        rows = [row(NOW, 3), row(NOW), row(LATER)]
        expected = pace.expected_s(rows, service.now())
        assert expected == [pytest.approx(each * 2, rel=0.01) for each in (1, 2, 5)]
        service.after(LOOKED_BACK_S + 1)
        assert pace.expected_s(rows, service.now()) == [None, None, None], "nothing went out lately"

    run(tell)


def test_what_was_placed_at_once_tells_nothing_and_a_load_has_its_own_estimate() -> None:
    async def tell() -> None:
        pace = Pace()
        service, _ = watched(spec("a"))
        service.watch(pace)
        for number in range(5):
            service.admit(offer(f"t{number}"))
        loading = ModelLoading(model=ModelName("m"), eta_s=7.0)
        assert pace.expected_s([row(NOW), row(NOW, reason=loading)], Instant(service.now())) == [None, 7.0]

    run(tell)
