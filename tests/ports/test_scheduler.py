import asyncio

import pytest

from adapters.engine_http.scripted_engine import run_bounded
from luftpause.core.model.ids import ReplicaId, RunId
from luftpause.core.model.replicas import Endpoint, Placement
from luftpause.ports.scheduler import Ticket

PLACEMENT = Placement(replica=ReplicaId("a"), endpoint=Endpoint(url="http://a"), why="it was free")


@pytest.mark.parametrize("waits", [True, False], ids=["awaited before", "asked for later"])
def test_a_ticket_ends_with_its_placement_whether_or_not_somebody_waits(waits: bool) -> None:
    async def main() -> None:
        ticket = Ticket(RunId("r"))
        assert not ticket.is_settled
        waiting = ticket.placement if waits else None
        ticket.place(PLACEMENT)
        assert ticket.is_settled
        assert ticket.placed is (None if waits else PLACEMENT)
        assert await ticket.placement is PLACEMENT
        assert waiting is None or waiting is ticket.placement

    run_bounded(main())


def test_a_ticket_may_bring_its_own_future() -> None:
    async def main() -> None:
        future: asyncio.Future[Placement] = asyncio.get_running_loop().create_future()
        ticket = Ticket(RunId("r"), future, RunId("p"))
        assert (ticket.placement, ticket.parent) == (future, "p")
        future.cancel()
        assert ticket.is_settled

    run_bounded(main())
