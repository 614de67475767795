"""Charging turns that engines have already."""

from core.scheduling.builders import World, arrived, probed, spec
from luftpause.core.model.ids import Instant, ReplicaId
from luftpause.core.scheduling.adopting import adopt, noted
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.invariants import check
from luftpause.core.scheduling.reasons import PlacedBecause
from luftpause.core.scheduling.state import Turn


def on(replica: str, draft: Draft) -> Turn:
    offer, seq = arrived("t"), draft.take_seq()
    over_in = draft.expect_life(offer.peer, Instant(0.0))
    return Turn(offer, ReplicaId(replica), PlacedBecause.RESYNCED, 0.0, seq, in_run=False, over_in=over_in)


def test_a_turn_is_charged_where_it_is_and_is_no_longer_one_of_others() -> None:
    world = World(spec("a"), healthy=False)
    world.tell(probed("a", running=2, waiting=1))
    draft = Draft(world.state)
    adopt(draft, on("a", draft))
    state = draft.freeze().state
    check(state)
    assert (state.replicas[ReplicaId("a")].in_flight, state.replicas[ReplicaId("a")].foreign) == (1, 2)


def test_a_replica_that_nobody_declared_is_noted_once() -> None:
    draft = Draft(World().state)
    replica = adopt(draft, on("stranger", draft))
    assert not replica.declared
    assert noted(draft, ReplicaId("stranger")).epoch == replica.epoch
    check(draft.freeze().state)
