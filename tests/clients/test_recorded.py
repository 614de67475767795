import json
from pathlib import Path

from clients.recorded import Run, recorded_in


def test_runs_are_read_from_an_event_log(tmp_path: Path) -> None:
    lines = [
        json.dumps({"line": "segment", "state": []}),
        arrived("1", "a"),
        finished("1", "x", "y"),
        arrived("2", "b", parent="a"),
        finished("2", "z"),
        arrived("3", "a"),
        finished("3"),
        arrived("4", "c", order="RefuseTurn"),
        json.dumps({"line": "event", "kind": "TurnAbandoned", "event": {"turn": "9"}, "orders": []}),
    ]
    log = tmp_path / "events.jsonl"
    log.write_text("\n".join(lines))
    seen = recorded_in(log)
    assert list(seen.runs.values()) == [Run("a", None, 2, False), Run("b", "a", 1, True)]
    assert (seen.turns, seen.children, seen.calls, seen.failures) == (3, 1, 3, ["TurnAbandoned in 9"])


def arrived(turn: str, run: str, *, parent: str | None = None, order: str = "PlaceTurn") -> str:
    event = {"turn": turn, "run": run, "parent": parent}
    return json.dumps({"line": "event", "kind": "TurnArrived", "event": event, "orders": [[order, {}, ""]]})


def finished(turn: str, *calls: str) -> str:
    event = {"turn": turn, "tool_calls": calls}
    return json.dumps({"line": "event", "kind": "TurnFinished", "event": event, "orders": []})
