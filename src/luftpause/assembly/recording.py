"""What is written down, or proved, of the scheduler's decisions while they are made."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import luftpause
from luftpause.adapters.event_log.writer import EventLog
from luftpause.assembly.start_failed import StartFailedError
from luftpause.services.scheduler.service import SchedulerService
from luftpause.services.scheduler.settings import SchedulerSettings
from luftpause.services.scheduler.validating import Validator
from luftpause.services.scheduler.witness import Witness
from luftpause.telemetry.borrowed import BorrowedCounter

DROPPED: Final = "luftpause_event_log_dropped_events"
"""Shown with `_total` at its end, and only while an event log is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What is asked for.

    Attributes:
        event_log: the file that every event is appended to; None writes none.
        validates: whether the state is proved sound after every event.
    """

    event_log: Path | None = None
    validates: bool = False


@asynccontextmanager
async def recorded_scheduler(
    settings: SchedulerSettings, recording: Recording, *others: Witness
) -> AsyncIterator[SchedulerService]:
    """Run the scheduler's service, seen by whoever records it and by others.

    Raises:
        StartFailedError: the event log cannot be written.
    """
    witnesses: Sequence[Witness] = (*others, Validator()) if recording.validates else others
    if recording.event_log is None:
        service = SchedulerService(settings, witnesses)
        service.start()
        try:
            yield service
        finally:
            service.close()
        return
    log = EventLog(recording.event_log, version=luftpause.__version__, policy=settings.policy)
    service = SchedulerService(settings, (log, *witnesses))
    service.metrics.show(BorrowedCounter(DROPPED, "Events that the event log did not get.", lambda: log.dropped))
    try:
        log.start(service.state, service.now())
    except OSError as error:
        raise StartFailedError(f"--event-log: cannot write {recording.event_log}: {error.strerror or error}") from error
    service.start()
    try:
        yield service
    finally:
        service.close()
        await asyncio.to_thread(log.close)
