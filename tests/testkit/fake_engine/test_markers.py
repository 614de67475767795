"""Orders in a message."""

import pytest

from luftpause.testkit.fake_engine.markers import Orders, read_orders, without_markers


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        ("nothing special", Orders()),
        ("look [tools:3] around", Orders(tool_rounds=3)),
        ("[tools:0]", Orders(tool_rounds=0)),
        ("[parallel:2][tool:deep_search]", Orders(parallel=2, tool="deep_search")),
        (
            "[arg:command=echo hi][arg:prompt=do {tools:1}] [arg:x] [arg:y=]",
            Orders(arguments=(("command", "echo hi"), ("prompt", "do [tools:1]"), ("y", ""))),
        ),
        ("[tokens:7]", Orders(tokens=7)),
        ("[as-text:qwen-coder]", Orders(as_text="qwen-coder")),
        ("[fail:429]", Orders(fail=429)),
        ("[fail:503:2]", Orders(fail=503, fail_times=2)),
        ("[fail:200] [fail:9]", Orders()),
        ("[die] [stall]", Orders(die=True, stall=True)),
        ("[no-usage]", Orders(no_usage=True)),
        ("[no-logprobs]", Orders(no_logprobs=True)),
        ("[tools:x] [tools:] [jump:1]", Orders()),
        ("[tools:1] then [tools:2]", Orders(tool_rounds=2)),
        ("[tokens:99999999]", Orders(tokens=100_000)),
        ("[tools:٣]", Orders()),
    ],
)
def test_a_marker_orders_what_it_says(text: str, orders: Orders) -> None:
    assert read_orders(text) == orders


def test_a_message_without_its_markers_is_what_a_person_meant() -> None:
    assert without_markers("[tools:2] Where does it  rise? [die]") == "Where does it rise?"
    assert without_markers("Run it. [arg:command=echo hi]") == "Run it."
    assert without_markers("an [ordinary] bracket") == "an [ordinary] bracket"
