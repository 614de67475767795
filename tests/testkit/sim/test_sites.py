"""Replicas by the rules."""

from core.scheduling.builders import probed, spec
from luftpause.core.model.ids import ReplicaId
from luftpause.core.scheduling.state import Limits
from luftpause.testkit.sim.sites import Sites, adopted, declared, noted, removed
from luftpause.testkit.sim.sites import probed as looked_at

A = ReplicaId("a")


def test_what_two_reports_have_beyond_our_turns_is_of_others() -> None:
    sites: Sites = {}
    declared(sites, spec("a"), 1)
    site = sites[A]
    site.flying = site.peak = 2
    for now, running, foreign in ((1.0, 2, 0), (2.0, 7, 0), (3.0, 6, 4), (3.0, 9, 4), (4.0, 1, 0)):
        looked_at(site, probed("a", running, 0), now, Limits(), 2)
        assert site.foreign == foreign
    site.foreign = 1
    adopted(site)
    adopted(site)
    assert site.foreign == 0


def test_an_engine_that_queues_leaves_us_what_others_do_not_take_and_one_turn_at_least() -> None:
    sites: Sites = {}
    site = noted(sites, A, 1)
    assert not site.declared
    declared(sites, spec("a"), 2)
    looked_at(site, probed("a", 4, 2), 1.0, Limits(), 3)
    assert (site.foreign, site.most) == (6, 1)
    site.foreign = 1
    assert site.most == 3
    looked_at(site, probed("a", healthy=False), 2.0, Limits(), 4)
    assert site.most is None
    assert (site.foreign, site.life) == (0, 4)
    removed(sites, A, 5)
    assert not sites
