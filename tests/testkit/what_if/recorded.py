"""Event logs: of simulated worlds, whose scheduler writes down what it decides, and written by hand."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from adapters.event_log.logs import resealed
from core.scheduling.builders import arrived, probed, spec
from luftpause.adapters.event_log.lines import entry, segment
from luftpause.core.model.ids import Instant, ToolCallId, TurnId
from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.decide import decide
from luftpause.core.scheduling.events import Event, FirstTokenSeen, ReplicaAdded, TurnFinished
from luftpause.core.scheduling.state import Decision, Limits, State, empty_state
from luftpause.testkit.sim import admission
from luftpause.testkit.sim.scenario import Scenario
from testkit.sim.worlds import world_of


@contextmanager
def written_down(lines: list[bytes]) -> Iterator[None]:
    """Write down what any such arm decides meanwhile."""

    def deciding(state: State, event: Event, now: Instant) -> Decision:
        if not lines:
            lines.append(segment(state, now, version="test", policy="turn-admission", utc="2026-01-01T00:00:00Z"))
        decision = decide(state, event, now)
        lines.append(entry(event, now, decision.actions, ""))
        return decision

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admission, "decide", deciding)
        yield


def recorded(scenario: Scenario, minutes: float) -> list[bytes]:
    """Return the log of a scenario's world."""
    lines: list[bytes] = []
    with written_down(lines):
        world_of(scenario, "turn-admission").run_until(minutes * 60)
    return resealed(lines)


def log_of(*told: tuple[float, Event], utc: str = "2026-01-01T00:00:00Z", state: State | None = None) -> list[bytes]:
    """Return a log of one segment: the real scheduler is told these events at these instants."""
    state = empty_state(Limits()) if state is None else state
    lines = [segment(state, Instant(told[0][0]), version="test", policy="turn-admission", utc=utc)]
    for now, event in told:
        decision = decide(state, event, Instant(now))
        lines.append(entry(event, Instant(now), decision.actions, ""))
        state = decision.state
    return resealed(lines)


def declared(*models: str, at: float = 0.0, name: str = "a") -> list[tuple[float, Event]]:
    """Return that a replica is declared and found healthy."""
    return [(at, ReplicaAdded(spec=spec(name, *models))), (at, probed(name, 0, 0))]


def turn(
    name: str,
    run: str,
    at: float,
    took: float,
    tokens: tuple[int, int, int] | None = (100, 10, 0),
    *,
    tools: int = 0,
    model: str = "m",
) -> list[tuple[float, Event]]:
    """Return a turn's events: its answer begins half-way. `tokens`: of the prompt, of the reply, found cached."""
    usage = (
        None if tokens is None else Usage(prompt_tokens=tokens[0], completion_tokens=tokens[1], cached_tokens=tokens[2])
    )
    calls = tuple(ToolCallId(f"{name}-{number}") for number in range(tools))
    arrival = replace(arrived(name, run, model=model), prompt_bytes=400 if tokens is None else 4 * tokens[0])
    return [
        (at, arrival),
        (at + took / 2, FirstTokenSeen(turn=TurnId(name))),
        (at + took, TurnFinished(turn=TurnId(name), usage=usage, tool_calls=calls)),
    ]
