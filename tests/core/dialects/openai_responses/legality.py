"""What every stream of a response has to keep to, whatever its engine said. Knows none of the code that writes it."""

from collections.abc import Sequence
from typing import cast

from core.dialects.openai_responses.exchanges import LAST, Object, output_of

TEXT_KEYS = {
    "response.output_text": "text",
    "response.reasoning_text": "text",
    "response.function_call_arguments": "arguments",
    "response.custom_tool_call_input": "input",
}


def check_stream(events: Sequence[Object]) -> None:
    """Raise AssertionError where a stream is not legal."""
    kinds = [event["type"] for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert [kind in LAST for kind in kinds] == [False] * (len(kinds) - 1) + [True]
    responses = [cast("Object", event["response"]) for event in events if "response" in event]
    assert len({response["id"] for response in responses}) == 1
    done: list[Object] = []
    item: _Item | None = None
    for event in events[2:-1]:
        if event["type"] == "response.output_item.added":
            assert item is None, "one item at a time"
            item = _Item(event)
            assert event["output_index"] == len(done)
        else:
            assert item is not None, event
            item.take(event)
            if event["type"] == "response.output_item.done":
                done.append(item.check_done(event))
                item = None
    final = output_of(events)
    assert final[: len(done)] == done
    assert len(final) - len(done) == (1 if item else 0)
    assert item is None or kinds[-1] == "response.failed", "only a failure leaves an item open"
    assert len({each["id"] for each in final}) == len(final)
    calls = [each["call_id"] for each in final if "call_id" in each]
    assert len(set(calls)) == len(calls)


class _Item:
    def __init__(self, added: Object) -> None:
        self.begun = cast("Object", added["item"])
        self.place = added["output_index"]
        self.grown = ""
        self.told: str | None = None
        assert self.begun["status"] == "in_progress"

    def take(self, event: Object) -> None:
        kind = str(event["type"])
        assert event["output_index"] == self.place
        assert kind == "response.output_item.done" or event["item_id"] == self.begun["id"]
        stem, _, stage = kind.rpartition(".")
        if stage == "delta":
            assert self.told is None
            self.grown += str(event["delta"])
        elif stem in TEXT_KEYS:
            self.told = str(event[TEXT_KEYS[stem]])
            assert self.told == self.grown

    def check_done(self, event: Object) -> Object:
        item = cast("Object", event["item"])
        for key in ("id", "type", "call_id", "name", "namespace"):
            assert item.get(key) == self.begun.get(key)
        assert item["status"] in ("completed", "incomplete")
        if self.told is not None:
            assert self.told in _texts(item)
        return item


def _texts(item: Object) -> list[object]:
    parts = cast("list[Object]", item.get("content") or [])
    return [item.get("arguments"), item.get("input"), *[part["text"] for part in parts]]
