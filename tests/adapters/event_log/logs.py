"""Event logs made of random histories. Run as a program it replays one: `logs.py FILE`."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from core.scheduling.histories import history
from luftpause.adapters.event_log.lines import sealed
from luftpause.adapters.event_log.replaying import replay
from luftpause.adapters.event_log.writer import EventLog
from luftpause.core.model.ids import Instant
from luftpause.core.scheduling.decide import decide
from luftpause.core.scheduling.state import Limits, State, empty_state


def write(log: EventLog, *, seed: int, length: int, state: State | None = None) -> State:
    """Start the log, live a history under it, close it; return the last state."""
    state = empty_state(Limits()) if state is None else state
    log.start(state, Instant(0.0))
    for event, now in history(seed, length):
        decision = decide(state, event, now)
        log.decided(state, event, now, decision)
        state = decision.state
    log.close()
    return state


def event_log(path: Path, **limits: int) -> EventLog:
    return EventLog(path, version="test", policy="turn-admission", **limits)


def resealed(lines: Iterable[bytes]) -> list[bytes]:
    """Return lines with the sums that they would have been written with, whatever sums they have."""
    total = 0
    fresh = []
    for line in lines:
        plain = re.sub(rb',"sum":"[0-9a-f]{8}"}\n$', b"}\n", line)
        text, total = sealed(plain, 0 if plain.startswith(b'{"line":"segment"') else total)
        fresh.append(text)
    return fresh


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    with Path(sys.argv[1]).open("rb") as lines:
        sys.stdout.write(f"{replay(lines).events}")
