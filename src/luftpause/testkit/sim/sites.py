"""Replicas by the rules: they are declared, probed and taken away, and their engines have work of others too."""

from dataclasses import replace

from luftpause.core.model.ids import ReplicaId
from luftpause.core.model.replicas import Load, ReplicaSpec
from luftpause.core.scheduling.events import ReplicaProbed
from luftpause.core.scheduling.state import Limits
from luftpause.testkit.sim.narrow import Narrow
from luftpause.testkit.sim.records import Site

Sites = dict[ReplicaId, Site]


def noted(sites: Sites, replica: ReplicaId, number: int) -> Site:
    """Return a replica, noted but not declared if nobody spoke of it before. `number` is of its first life."""
    return sites.setdefault(replica, Site(None, number, declared=False))


def declared(sites: Sites, spec: ReplicaSpec, number: int) -> None:
    """A replica was declared; `number` is of the life that it may begin."""
    site = sites.get(spec.replica)
    if site is None:
        sites[spec.replica] = Site(spec, number)
    elif not site.declared:
        site.declared, site.spec, site.was_well, site.peak = True, spec, False, site.flying
    elif site.spec != spec:
        site.spec, site.was_well = spec, False
        _begin_life(site, number)


def removed(sites: Sites, name: ReplicaId, number: int) -> None:
    """A replica was taken away; it stays while turns are in flight there."""
    site = sites.get(name)
    if site is None or not site.declared:
        return
    site.declared = False
    _begin_life(site, number)
    if not site.flying:
        del sites[name]


def probed(site: Site, event: ReplicaProbed, now: float, limits: Limits, number: int) -> None:
    """A declared replica was looked at; one whose engine counts from the beginning again was away meanwhile."""
    read = event.load.prompt_tokens if event.healthy and event.load is not None else None
    if site.healthy and read is not None and site.read is not None and read < site.read / 2:
        probed(site, replace(event, healthy=False, load=None), now, limits, number)
    site.read = site.read if read is None else read
    if site.healthy and not event.healthy:
        _begin_life(site, number)
    if event.healthy and not site.healthy and site.was_well:
        site.narrow = Narrow(limits.slow_start)
    site.was_well = site.was_well or event.healthy
    site.healthy = event.healthy
    site.load = event.load if event.healthy else None
    if event.healthy and event.load is not None and event.load.kv_tokens is not None and event.load.kv_tokens > 0:
        site.memory = event.load.kv_tokens
    if event.healthy:
        _hear(site, event.load, now)


def adopted(site: Site) -> None:
    """A turn turns out to be ours that the engine has already: it was foreign until now."""
    site.foreign = max(0, site.foreign - 1)


def _hear(site: Site, load: Load | None, now: float) -> None:
    if load is None:
        site.surplus = site.foreign = 0
    elif site.heard_at != now:  # else the same report is told twice
        before, site.surplus = site.surplus, max(0, load.running + load.waiting - site.peak)
        site.foreign = site.surplus if before is None else min(before, site.surplus)
        site.peak, site.heard_at = site.flying, now


def _begin_life(site: Site, number: int) -> None:
    site.life, site.healthy, site.load, site.closed_until = number, False, None, None
    site.narrow = site.surplus = site.heard_at = site.read = site.memory = None
    site.foreign, site.peak = 0, site.flying
