"""What a client did, as the scheduler's event log tells it: its turns, which runs they made, and what went wrong."""

import json
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Run:
    """A run as it was recognised. `open_calls`: it ended in tool calls and did not go on."""

    name: str
    parent: str | None
    turns: int = 0
    open_calls: bool = False


@dataclass
class Recorded:
    """All runs in the order in which they began."""

    runs: dict[str, Run] = field(default_factory=dict)
    calls: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def turns(self) -> int:
        return sum(run.turns for run in self.runs.values())

    @property
    def children(self) -> int:
        """How many runs are known to be another's."""
        return sum(run.parent is not None for run in self.runs.values())


def recorded_in(log: Path) -> Recorded:
    """Read an event log."""
    seen = Recorded()
    turns: dict[str, Run] = {}
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        if entry["line"] != "event":
            continue
        event = entry["event"]
        match entry["kind"]:
            case "TurnArrived" if not any(order[0] == "RefuseTurn" for order in entry["orders"]):
                run = seen.runs.setdefault(event["run"], Run(event["run"], event["parent"]))
                run.turns += 1
                run.open_calls = False
                turns[event["turn"]] = run
            case "TurnFinished":
                seen.calls += len(event["tool_calls"])
                turns[event["turn"]].open_calls = bool(event["tool_calls"])
            case "TurnFailed" | "TurnAbandoned" | "TurnExpired":
                seen.failures.append(f"{entry['kind']} in {event['turn']}")
    return seen
