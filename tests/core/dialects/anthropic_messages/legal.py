"""A second reader of Messages streams, kept without the product's code: it says whether one is a legal sequence."""

import json
from dataclasses import dataclass, field
from typing import Any

DELTAS = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}
CALL_DELTA = ("input_json_delta", "partial_json")


@dataclass
class Told:
    """What a legal stream told. A block is its kind, its text, and id and name of a call."""

    blocks: list[tuple[str, str, str, str]] = field(default_factory=list)
    stop_reason: str = ""
    stop_sequence: str | None = None
    usage: dict[str, int] = field(default_factory=dict)
    error: str = ""
    pings: int = 0


def events_of(stream: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Return the events by name and data; each must have both, and the same name in its data."""
    assert stream.endswith(b"\n\n")
    events = []
    for event in stream.decode().removesuffix("\n\n").split("\n\n"):
        first, second = event.split("\n")
        name, data = first.removeprefix("event: "), json.loads(second.removeprefix("data: "))
        assert data["type"] == name
        events.append((name, data))
    return events


def told_by(stream: bytes) -> Told:
    """Return what a stream tells; an illegal one fails an assertion."""
    told = Told()
    phase = "new"
    for name, data in events_of(stream):
        assert phase != "over", f"{name} after the end"
        match name:
            case "ping":
                told.pings += 1
            case "error":
                told.error, phase = data["error"]["message"], "over"
            case "message_start":
                assert phase == "new"
                assert data["message"]["id"].startswith("msg_")
                assert data["message"]["content"] == []
                assert data["message"]["usage"]["output_tokens"] == 0
                phase = "between"
            case "content_block_start" | "content_block_delta" | "content_block_stop":
                phase = _block_event(told, phase, name, data)
            case "message_delta":
                assert phase == "between"
                told.stop_reason, told.stop_sequence = data["delta"]["stop_reason"], data["delta"]["stop_sequence"]
                told.usage, phase = data["usage"], "stopping"
            case "message_stop":
                assert phase == "stopping"
                phase = "over"
            case _:
                raise AssertionError(name)
    assert phase == "over", f"no end, only {phase}"
    return told


def _block_event(told: Told, phase: str, name: str, data: dict[str, Any]) -> str:
    if name == "content_block_start":
        assert phase == "between"
        assert data["index"] == len(told.blocks)
        block = data["content_block"]
        if block["type"] == "tool_use":
            assert block["input"] == {}
            assert block["id"]
        told.blocks.append((block["type"], "", block.get("id", ""), block.get("name", "")))
        return "inside"
    assert phase == "inside"
    assert data["index"] == len(told.blocks) - 1
    if name == "content_block_stop":
        return "between"
    kind, text, call_id, call_name = told.blocks[-1]
    delta, member = DELTAS.get(kind, CALL_DELTA)
    assert data["delta"]["type"] == delta
    told.blocks[-1] = (kind, text + data["delta"][member], call_id, call_name)
    return "inside"
