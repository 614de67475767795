"""What the fake tools declare and take."""

import random
from dataclasses import replace
from pathlib import Path

from luftpause.testkit.fake_mcp.tools import DEEP_S, LOOKUP_S, Settings, offered_tools, record_effect

SETTINGS = Settings()


def test_lookup_and_deep_search_only_read_and_say_so() -> None:
    tools = offered_tools(SETTINGS)
    assert list(tools) == ["lookup", "deep_search"]
    for tool in tools.values():
        assert tool.tool.annotations is not None
        assert tool.tool.annotations.read_only_hint is True
        assert tool.tool.description
        assert tool.tool.input_schema["required"] == ["query"]


def test_delete_note_is_offered_only_when_asked_for_and_says_that_it_destroys() -> None:
    tools = offered_tools(replace(SETTINGS, destructive=True))
    assert list(tools) == ["lookup", "deep_search", "delete_note"]
    annotations = tools["delete_note"].tool.annotations
    assert annotations is not None
    assert (annotations.destructive_hint, annotations.read_only_hint) == (True, False)


def test_delays_are_random_within_their_range_unless_fixed() -> None:
    tools = offered_tools(SETTINGS)
    for name, (least, most) in (("lookup", LOOKUP_S), ("deep_search", DEEP_S)):
        delays = {tools[name].delay_s(random.Random(seed)) for seed in range(50)}
        assert len(delays) == 50
        assert all(least <= delay <= most for delay in delays)
    fixed = offered_tools(Settings(delay_s=0.25, deep_delay_s=0.0))
    assert fixed["lookup"].delay_s(random.Random(1)) == 0.25
    assert fixed["deep_search"].delay_s(random.Random(1)) == 0.0


def test_deep_search_finds_more_and_both_quote_the_query() -> None:
    tools = offered_tools(SETTINGS)
    short, long = (tools[name].answer("the Danube", random.Random(1)) for name in ("lookup", "deep_search"))
    assert '"the Danube"' in short
    assert '"the Danube"' in long
    assert len(long) > len(short)


def test_effects_are_appended_line_by_line_whatever_the_value_holds(tmp_path: Path) -> None:
    path = tmp_path / "effects"
    record_effect(path, "delete_note", "a\nb")
    record_effect(path, "delete_note", "c")
    assert path.read_text(encoding="utf-8").splitlines() == [
        '{"tool": "delete_note", "argument": "a\\nb"}',
        '{"tool": "delete_note", "argument": "c"}',
    ]
