"""Finding out how replicas are: every declared one is asked for its health and its load, again and again.

Only the health path decides about health. A load that does not arrive in time is unknown, and that is all. Replicas
are probed side by side: a slow one delays no other.
"""

import asyncio
import logging
from dataclasses import replace
from typing import Final

from luftpause.core.dialects.engine_metrics import parse_load, recognise
from luftpause.core.dialects.engine_priorities import PATHS, priorities_in
from luftpause.core.model.ids import ReplicaId
from luftpause.core.model.replicas import Endpoint, EngineKind, Load, Priorities, ReplicaSpec
from luftpause.core.scheduling.events import ReplicaProbed
from luftpause.ports.engines import Engines
from luftpause.services.scheduler.fetching import Fetcher
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.scheduler.settings import SchedulerSettings

METRICS_PATH: Final = "/metrics"
METRICS_BYTES_MAX: Final = 1024 * 1024
"""More than any engine writes; the rest of a longer report is not read."""
HEALTH_BYTES_MAX: Final = 64 * 1024

SILENT: Final = frozenset({EngineKind.OLLAMA, EngineKind.OPENAI})
"""Engines that have no report of their load to ask for."""

_log = logging.getLogger("luftpause.probes")


class ReplicaProbe:
    """Asks a replica how it is. A question takes as long as the longest of its requests, at most `timeout_s`."""

    def __init__(self, engines: Engines, timeout_s: float) -> None:
        self._fetcher = Fetcher(engines, timeout_s)

    async def ask(self, spec: ReplicaSpec) -> ReplicaProbed:
        """Ask for health and load at once."""
        fetch = self._fetcher.fetch
        async with asyncio.TaskGroup() as requests:
            health = requests.create_task(fetch(spec.endpoint, spec.health, HEALTH_BYTES_MAX))
            reports = [
                requests.create_task(fetch(endpoint, METRICS_PATH, METRICS_BYTES_MAX)) for endpoint in _reporting(spec)
            ]
        texts = [text for report in reports if (text := report.result().text) is not None]
        loads = [load for text in texts if (load := parse_load(text)) is not None]
        if any(report.result().late for report in reports):
            loads = []  # a router's load without that of one of its engines would be too small by nobody knows how much
        return ReplicaProbed(
            replica=spec.replica,
            healthy=health.result().text is not None,
            load=None if not loads else loads[0] if len(reports) == 1 else _sum(loads),
            engine=_engine(spec, texts),
            cause=health.result().cause,
        )

    async def priorities(self, spec: ReplicaSpec, engine: EngineKind) -> tuple[Priorities | None, bool]:
        """Ask an engine whether it takes priorities: None where it does not say so; and whether it answered."""
        path = PATHS.get(engine)
        if path is None:
            return None, True
        told = await self._fetcher.fetch(spec.endpoint, path, METRICS_BYTES_MAX)
        return (None if told.text is None else priorities_in(engine, told.text)), not told.late


class Prober:
    """Probes what the scheduler declares, and tells it. One task per replica; `close` ends them all."""

    def __init__(self, service: SchedulerService, engines: Engines) -> None:
        self._service = service
        self._settings: SchedulerSettings = service.settings
        self._probe = ReplicaProbe(engines, self._settings.probe_timeout_s)
        policy = self._settings.limits.working_set
        self._wants_priorities = policy is not None and policy.native_priority
        self._tasks: dict[ReplicaId, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Probe every replica declared now, and every one declared later."""
        self._service.listen(self)

    async def close(self) -> None:
        """Stop all probing and wait until it has stopped."""
        for replica in tuple(self._tasks):
            self.removed(replica)
        if self._ending:
            await asyncio.wait(self._ending)

    def declared(self, spec: ReplicaSpec) -> None:
        """Probe a replica from now on, in place of an older declaration of the same name."""
        self.removed(spec.replica)
        self._tasks[spec.replica] = asyncio.create_task(self._watch(spec), name=f"probe {spec.replica}")

    def removed(self, replica: ReplicaId) -> None:
        """Probe a replica no longer."""
        task = self._tasks.pop(replica, None)
        if task is not None:
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _watch(self, spec: ReplicaSpec) -> None:
        loop = asyncio.get_running_loop()
        period_s = self._settings.probe_eager_s
        asked, priorities = False, None
        overdue_at: float | None = loop.time() + self._settings.not_ready_warning_s
        while True:
            started = loop.time()
            try:
                probe = await self.probe(spec)
                if not probe.healthy:
                    asked, priorities = False, None
                elif not asked and self._wants_priorities:  # once in each of its lives: it is started with them
                    engine = probe.engine if spec.engine is EngineKind.AUTO else spec.engine
                    priorities, asked = await self._probe.priorities(spec, engine)
                probe = replace(probe, priorities=priorities)
            except Exception:  # noqa: BLE001 — a probe that breaks must not end the probing of its replica
                _log.exception("probe_failed", extra={"replica": spec.replica})
                probe = ReplicaProbed(replica=spec.replica, healthy=False, cause="probing failed; the log says how")
                period_s = self._settings.probe_period_s
            self._service.probed(probe)
            if probe.healthy:
                period_s = self._settings.probe_period_s
                overdue_at = None
            elif overdue_at is not None and loop.time() >= overdue_at:
                overdue_at = None
                _log.warning("replica_never_ready", extra={"replica": spec.replica, "cause": probe.cause})
            await asyncio.sleep(max(0.0, started + period_s - loop.time()))

    async def probe(self, spec: ReplicaSpec) -> ReplicaProbed:
        """Ask a replica once."""
        return await self._probe.ask(spec)


def _reporting(spec: ReplicaSpec) -> tuple[Endpoint, ...]:
    """Return where the load is read: from the engines behind a router, which get no key of the router's."""
    if spec.load_from:
        return tuple(Endpoint(url=url) for url in spec.load_from)
    if spec.engine in SILENT or spec.engine is EngineKind.ROUTER:
        return ()
    return (spec.endpoint,)


def _engine(spec: ReplicaSpec, texts: list[str]) -> EngineKind:
    if spec.load_from:
        return EngineKind.ROUTER
    return next((engine for text in texts if (engine := recognise(text)) is not None), EngineKind.AUTO)


def _sum(loads: list[Load]) -> Load:
    """Return the load of several engines; each has a life of its own, so what they read is not added up."""
    tokens = [load.kv_tokens for load in loads if load.kv_tokens is not None]
    preemptions = [load.preemptions for load in loads if load.preemptions is not None]
    return Load(
        running=sum(load.running for load in loads),
        waiting=sum(load.waiting for load in loads),
        kv_tokens=sum(tokens) if len(tokens) == len(loads) and tokens else None,
        preemptions=sum(preemptions) if len(preemptions) == len(loads) and preemptions else None,
    )
