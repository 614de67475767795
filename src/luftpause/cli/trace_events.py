"""The timeline as a trace in Chrome's trace-event format. Pure.

Runs are threads of one process and models of another, so that a viewer shows each as a row under a heading.
"""

from typing import Final

import msgspec

Json = dict[str, object]

RUNS: Final = 1
MODELS: Final = 2
_NOTHING: Final = frozenset({"idle", "gone"})


class LaneRow(msgspec.Struct, frozen=True, array_like=True):
    """A run or a model, as `GET /timeline` tells it."""

    number: int
    name: str
    kind: str
    service_class: str = ""
    caller: str = ""
    model: str = ""
    parent: str | None = None


class ChangeRow(msgspec.Struct, frozen=True, array_like=True):
    """From then on a lane is in a phase."""

    lane: int
    phase: str
    at_ms: int
    detail: str = ""


class Told(msgspec.Struct, frozen=True):
    """A timeline up to a moment."""

    now_ms: int
    lanes: list[LaneRow]
    changes: list[ChangeRow]


def trace_events(told: Told, last_ms: float | None = None) -> Json:
    """Return the trace, or only the last while of it."""
    from_ms = min((change.at_ms for change in told.changes), default=0)
    if last_ms is not None:
        from_ms = max(from_ms, round(told.now_ms - last_ms))
    of_lane: dict[int, list[ChangeRow]] = {lane.number: [] for lane in told.lanes}
    for change in told.changes:
        if change.lane in of_lane:
            of_lane[change.lane].append(change)
    events: list[Json] = [_named("process_name", RUNS, 0, "runs"), _named("process_name", MODELS, 0, "models")]
    for lane in told.lanes:
        spans = _spans(lane, of_lane[lane.number], from_ms, told.now_ms)
        if spans:
            events.append(_named("thread_name", _process(lane), lane.number, _label(lane)))
            events += spans
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _spans(lane: LaneRow, changes: list[ChangeRow], from_ms: int, now_ms: int) -> list[Json]:
    about = {
        "run": lane.name,
        "caller": lane.caller,
        "class": lane.service_class,
        "model": lane.model,
        "parent": lane.parent or "",
    }
    found: list[Json] = []
    for place, change in enumerate(changes):
        ends = changes[place + 1].at_ms if place + 1 < len(changes) else now_ms
        begins = max(change.at_ms, from_ms)
        if change.phase in _NOTHING or ends < from_ms:
            continue
        args = {key: value for key, value in {**about, "detail": change.detail}.items() if value}
        event: Json = {
            "name": change.phase,
            "cat": lane.kind,
            "pid": _process(lane),
            "tid": lane.number,
            "ts": (begins - from_ms) * 1000,
            "args": args,
        }
        if change.phase == "failed":
            found.append({**event, "ph": "i", "s": "t"})
        else:
            found.append({**event, "ph": "X", "dur": max(0, ends - begins) * 1000})
    return found


def _label(lane: LaneRow) -> str:
    caller = "" if lane.caller in ("", "anonymous") else f"{lane.caller} "
    return f"{caller}{lane.name}"


def _process(lane: LaneRow) -> int:
    return MODELS if lane.kind == "model" else RUNS


def _named(what: str, pid: int, tid: int, name: str) -> Json:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}
