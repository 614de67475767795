"""The state section by section: what is not in `test_http.py` already."""

import pytest

from luftpause.core.model.ids import PeerId
from luftpause.ports.scheduler import PeerSeen
from luftpause.services.scheduler.family_rows import FamilyRows
from luftpause.services.scheduler.pace import Pace
from luftpause.services.scheduler.status_json import Seen, sections
from services.scheduler.running import offer, run, spec
from services.scheduler.watched import watched

pytestmark = pytest.mark.interpreted  # its clock inherits from the service


def test_whoever_holds_the_link_is_told_with_its_open_turns() -> None:
    async def tell() -> None:
        service, timeline = watched(spec("a"))
        turn = offer("t1")
        service.admit(turn)
        peers = (PeerSeen(peer=turn.peer, is_connected=True), PeerSeen(peer=PeerId("gone"), is_connected=False))
        seen = Seen(state=service.state, now=service.now(), peers=peers, pace=Pace(), families=FamilyRows(timeline))
        assert sections(seen)["peers"] == [
            {"name": turn.peer, "connected": True, "open_turns": 1},
            {"name": "gone", "connected": False, "open_turns": 0},
        ]

    run(tell)
