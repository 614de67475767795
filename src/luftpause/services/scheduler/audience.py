"""Who wants to know which replicas are declared, and what it is told and logged after each decision."""

import logging
from typing import Protocol

from luftpause.core.model.ids import ReplicaId
from luftpause.core.model.replicas import ReplicaSpec
from luftpause.core.scheduling.events import Event, ReplicaAdded, ReplicaProbed, ReplicaRemoved
from luftpause.core.scheduling.state import State

_log = logging.getLogger("luftpause.scheduler")


class ReplicaListener(Protocol):
    """Who wants to know which replicas are declared. Calls come from the event loop and must not wait."""

    def declared(self, spec: ReplicaSpec) -> None:
        """A replica was declared, or declared anew with other words."""
        ...

    def removed(self, replica: ReplicaId) -> None:
        """A replica was taken away."""
        ...


class Audience:
    """All listeners."""

    def __init__(self) -> None:
        self._listeners: list[ReplicaListener] = []

    def join(self, listener: ReplicaListener, state: State) -> None:
        """Tell a listener of all replicas declared now, and of every change from now on."""
        self._listeners.append(listener)
        for replica in sorted(state.replicas.values(), key=lambda replica: replica.order):
            if replica.declared and replica.spec is not None:
                listener.declared(replica.spec)

    def follow(self, event: Event, before: State, state: State) -> None:
        """Tell what an event changed: it was declared itself, or came and went with a model."""
        if isinstance(event, ReplicaAdded):
            if state.replicas.get(event.spec.replica) is not before.replicas.get(event.spec.replica):
                self._declared(event.spec)
        elif isinstance(event, ReplicaRemoved):
            if event.replica not in state.residency.of_replica:
                self._removed(event.replica)
        elif isinstance(event, ReplicaProbed):
            _log_health(event.replica, before, state)
        elif state.residency.of_replica is not before.residency.of_replica:
            self._follow_models(before, state)

    def _follow_models(self, before: State, state: State) -> None:
        now, then = state.residency.of_replica, before.residency.of_replica
        for replica in sorted(then):
            if replica not in now:
                self._removed(replica)
        for replica in sorted(now):
            spec = state.replicas[replica].spec
            if spec is not None and (replica not in then or before.replicas[replica].spec != spec):
                self._declared(spec)

    def _declared(self, spec: ReplicaSpec) -> None:
        for listener in self._listeners:
            listener.declared(spec)

    def _removed(self, replica: ReplicaId) -> None:
        for listener in self._listeners:
            listener.removed(replica)


def _log_health(replica: ReplicaId, before: State, state: State) -> None:
    old, new = before.replicas.get(replica), state.replicas.get(replica)
    if old is None or new is None or (old.healthy is new.healthy and old.why == new.why):
        return
    if new.healthy:
        _log.info("replica_up", extra={"replica": replica, "engine": new.engine.value})
    elif old.seen_healthy:
        _log.warning("replica_down", extra={"replica": replica, "cause": new.why})
    else:  # most likely it is starting; the prober warns when that takes long
        _log.info("replica_not_ready", extra={"replica": replica, "cause": new.why})
