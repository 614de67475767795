"""A timeline as trace events."""

from collections.abc import Iterable
from typing import Any, cast

import jsonschema
import msgspec
import pytest

from luftpause.cli.trace_events import ChangeRow, LaneRow, Told, trace_events

LANES = [
    LaneRow(1, "small", "model", model="small"),
    LaneRow(2, "run_a", "run", "interactive", "me", "small"),
    LaneRow(3, "run_<b>", "run", "batch", "anonymous", "small", "run_a"),
]
CHANGES = [
    ChangeRow(1, "loading", 1000),
    ChangeRow(2, "loading", 1000, "small is loading"),
    ChangeRow(1, "up", 4000),
    ChangeRow(2, "prefill", 4000, "small-1"),
    ChangeRow(2, "decode", 4500, "small-1"),
    ChangeRow(2, "tool", 6000, "look"),
    ChangeRow(3, "prefill", 6500, "small-1"),
    ChangeRow(3, "failed", 7000),
    ChangeRow(2, "idle", 8000),
]
TOLD = Told(now_ms=9000, lanes=LANES, changes=CHANGES)

EVENT: dict[str, object] = {
    "type": "object",
    "required": ["name", "ph", "pid", "tid"],
    "properties": {
        "name": {"type": "string"},
        "cat": {"type": "string"},
        "ph": {"enum": ["M", "X", "i"]},
        "pid": {"type": "integer"},
        "tid": {"type": "integer"},
        "ts": {"type": "number", "minimum": 0},
        "dur": {"type": "number", "minimum": 0},
        "s": {"enum": ["g", "p", "t"]},
        "args": {"type": "object"},
    },
    "additionalProperties": False,
    "oneOf": [
        {"properties": {"ph": {"const": "M"}, "name": {"enum": ["process_name", "thread_name"]}}, "required": ["args"]},
        {"properties": {"ph": {"const": "X"}}, "required": ["ts", "dur", "cat"]},
        {"properties": {"ph": {"const": "i"}}, "required": ["ts", "s", "cat"]},
    ],
}


def check_legal(trace: object) -> None:
    """Prove a trace legal as the format has it: fields by kind, and spans of a row that follow each other."""
    whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(trace))
    assert whole["displayTimeUnit"] in ("ms", "ns")
    jsonschema.validate(whole["traceEvents"], {"type": "array", "items": EVENT})
    ends: dict[tuple[int, int], float] = {}
    for event in whole["traceEvents"]:
        if event["ph"] == "X":
            row = event["pid"], event["tid"]
            assert event["ts"] >= ends.get(row, 0), f"spans of a row overlap: {event}"
            ends[row] = event["ts"] + event["dur"]
    named = {(event["pid"], event["tid"]) for event in whole["traceEvents"] if event["name"] == "thread_name"}
    assert ends.keys() <= named


def shown(trace: dict[str, object]) -> list[tuple[object, ...]]:
    events = cast("Iterable[dict[str, object]]", trace["traceEvents"])
    return [(each["tid"], each["name"], each["ts"], each.get("dur")) for each in events if each["ph"] != "M"]


def test_each_phase_is_a_span_in_the_row_of_its_run() -> None:
    trace = trace_events(TOLD)
    check_legal(trace)
    assert shown(trace) == [
        (1, "loading", 0, 3_000_000),
        (1, "up", 3_000_000, 5_000_000),
        (2, "loading", 0, 3_000_000),
        (2, "prefill", 3_000_000, 500_000),
        (2, "decode", 3_500_000, 1_500_000),
        (2, "tool", 5_000_000, 2_000_000),
        (3, "prefill", 5_500_000, 500_000),
        (3, "failed", 6_000_000, None),
    ]
    events = cast("list[dict[str, Any]]", trace["traceEvents"])
    assert [event["args"]["name"] for event in events if event["ph"] == "M"] == [
        "runs",
        "models",
        "small",
        "me run_a",
        "run_<b>",
    ]
    (failed,) = [event for event in events if event["ph"] == "i"]
    assert failed["args"]["parent"] == "run_a"


def test_only_the_last_while_is_cut_at_its_beginning() -> None:
    trace = trace_events(TOLD, 3500)
    check_legal(trace)
    assert shown(trace)[:2] == [(1, "up", 0, 3_500_000), (2, "decode", 0, 500_000)]


@pytest.mark.parametrize("told", [Told(now_ms=0, lanes=[], changes=[]), Told(5, [], [ChangeRow(9, "held", 1)])])
def test_nothing_is_a_trace_too(told: Told) -> None:
    trace = trace_events(told)
    check_legal(trace)
    assert shown(trace) == []
