import pytest
from hypothesis import given
from hypothesis import strategies as st

from luftpause.core.dialects.anthropic_messages.blocks import HELD_CHARS_MAX, BlockQueue, TooMuchError


class Written:
    """A sink that keeps what it is told: one string for each block, open while it has no `)`."""

    def __init__(self) -> None:
        self.blocks: list[str] = []

    def open(self, kind: str, call_id: str, name: str) -> None:
        assert not self.blocks or self.blocks[-1].endswith(")"), "blocks overlap"
        self.blocks.append(f"{kind}{call_id}{name}(")

    def add(self, kind: str, text: str) -> None:
        assert self.blocks[-1].startswith(kind)
        assert not self.blocks[-1].endswith(")")
        self.blocks[-1] += text

    def close(self) -> None:
        self.blocks[-1] += ")"


def queue() -> tuple[BlockQueue, Written]:
    written = Written()
    return BlockQueue(written), written


def test_what_is_said_goes_out_as_it_comes() -> None:
    blocks, written = queue()
    for kind, text, expected in (
        ("thinking", "a", ["thinking(a"]),
        ("thinking", "b", ["thinking(ab"]),
        ("text", "c", ["thinking(ab)", "text(c"]),
    ):
        blocks.say(kind, text)
        assert written.blocks == expected
    blocks.end()
    assert written.blocks == ["thinking(ab)", "text(c)"]


def test_calls_one_after_the_other_are_not_held() -> None:
    blocks, written = queue()
    blocks.say("text", "a")
    blocks.begin_call(0, "1", "x")
    blocks.add_arguments(0, '{"a":')
    assert written.blocks == ["text(a)", 'tool_use1x({"a":']
    blocks.add_arguments(0, "1}")
    blocks.begin_call(1, "2", "y")
    blocks.add_arguments(1, "{")
    assert written.blocks[1:] == ['tool_use1x({"a":1})', "tool_use2y({"]


def test_mixed_arguments_are_put_in_order_as_soon_as_one_is_whole() -> None:
    blocks, written = queue()
    blocks.begin_call(0, "1", "")
    blocks.begin_call(1, "2", "")
    blocks.add_arguments(1, '{"b"')
    blocks.add_arguments(0, "{")
    blocks.add_arguments(1, ":2}")
    assert written.blocks == ["tool_use1({"]
    blocks.add_arguments(0, "}")
    assert written.blocks == ["tool_use1({})", 'tool_use2({"b":2}']


def test_a_brace_in_a_text_is_not_the_end_of_arguments() -> None:
    blocks, written = queue()
    blocks.begin_call(0, "1", "")
    blocks.begin_call(1, "2", "")
    blocks.add_arguments(0, '{"a":"}')
    assert written.blocks == ['tool_use1({"a":"}']
    blocks.add_arguments(0, '"}')
    assert written.blocks[0] == 'tool_use1({"a":"}"})'


def test_the_end_lets_everything_out_whole_or_not() -> None:
    blocks, written = queue()
    blocks.begin_call(0, "1", "")
    blocks.begin_call(1, "2", "")
    blocks.add_arguments(1, "[")
    blocks.say("text", "t")
    blocks.end()
    assert written.blocks == ["tool_use1()", "tool_use2([)", "text(t)"]


def test_arguments_after_their_end_and_of_nobody_are_dropped() -> None:
    blocks, written = queue()
    blocks.begin_call(0, "1", "")
    blocks.add_arguments(0, "{}")
    blocks.say("text", "t")
    blocks.add_arguments(0, " ")
    blocks.add_arguments(7, "{}")
    blocks.end()
    assert written.blocks == ["tool_use1({})", "text(t)"]


def test_what_is_held_is_bounded_and_what_goes_out_is_not() -> None:
    blocks, _ = queue()
    half = "x" * (HELD_CHARS_MAX // 2 + 1)
    for _round in range(5):
        blocks.say("text", half)
    blocks.begin_call(0, "1", "")
    blocks.say("text", half)
    with pytest.raises(TooMuchError):
        blocks.say("text", half)


def test_arguments_that_are_over_count_no_more() -> None:
    blocks, _ = queue()
    half = '{"a":"' + "x" * (HELD_CHARS_MAX // 2) + '"}'
    for call in range(4):
        blocks.begin_call(call, str(call), "")
        blocks.add_arguments(call, half)
    blocks.end()


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["{", "}", '"', "a", ":", "{}"])), max_size=40))
def test_nothing_is_lost_of_mixed_calls(pieces: list[tuple[int, str]]) -> None:
    blocks, written = queue()
    said = {call: "" for call, _ in pieces}
    for call in said:
        blocks.begin_call(call, str(call), "")
    for call, text in pieces:
        blocks.add_arguments(call, text)
        said[call] += text
    blocks.end()

    assert len(written.blocks) == len(said)
    for block, (call, text) in zip(written.blocks, said.items(), strict=True):
        got = block.removeprefix(f"tool_use{call}(").removesuffix(")")
        assert text.startswith(got)
        assert got == text or got.rstrip().endswith("}")  # what follows a whole document belongs to none
