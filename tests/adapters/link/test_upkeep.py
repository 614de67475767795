"""What leaves when, against a transport that writes down what is asked of it."""

import pytest

from adapters.link.test_wire import Ears, ScriptedTransport, with_wire
from contracts.offers import PEER, offer
from luftpause.adapters.link.upkeep import Upkeep
from luftpause.adapters.link.wire import Wire
from luftpause.core.scheduling.events import FirstTokenSeen, TurnAbandoned, TurnFailed, TurnFinished, TurnReport

TURN = offer(1).turn


@pytest.mark.parametrize(
    ("report", "leaves_at_once"),
    [
        (TurnFinished(turn=TURN), True),
        (TurnFailed(turn=TURN, cause="x"), True),
        (TurnAbandoned(turn=TURN), True),
        (FirstTokenSeen(turn=TURN), False),
    ],
)
def test_the_end_of_a_turn_has_left_before_its_client_can_see_it(report: TurnReport, leaves_at_once: bool) -> None:
    """The client may send its next turn to another dataplane at once; whatever else there is to tell may wait."""

    def story(wire: Wire, transport: ScriptedTransport, ears: Ears) -> None:
        upkeep = Upkeep(PEER, run_idle_s=60.0)
        upkeep.link_up(wire, "scheduler")
        wire.flush()
        before = len(transport.written)
        upkeep.report(report)
        assert (len(transport.written) > before) is leaves_at_once

    with_wire(story, unsent_max=1000)
