"""The state as plain values, for status pages and progress lines."""

from dataclasses import dataclass
from typing import assert_never

from luftpause.core.model.ids import Instant
from luftpause.core.processes.reasons import explain
from luftpause.core.processes.state import BackingOff, EngineProcess, Exited, Ready, Starting, Stopping


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """One engine process for people.

    Attributes:
        state: starting, ready, stopping, backing-off or exited.
        since_s: how long it has been in that state, seconds.
        why: one sentence without its full stop; empty when there is nothing to explain.
    """

    state: str
    since_s: float
    why: str


def view(state: EngineProcess, now: Instant) -> ProcessView:
    """Return what there is to say about the process now."""
    phase = state.phase
    match phase:
        case Starting():
            name, why = "starting", f"restart {state.failures}" if state.failures else ""
        case Ready():
            name, why = "ready", ""
        case Stopping():
            name, why = "stopping", phase.why.value
        case BackingOff():
            name, why = "backing-off", explain(phase.failure)
        case Exited():
            name = "exited"
            why = f"{phase.why.value}; it {explain(phase.failure)}" if phase.failure else phase.why.value
        case _:
            assert_never(phase)
    return ProcessView(state=name, since_s=max(0.0, now - phase.since), why=why)
