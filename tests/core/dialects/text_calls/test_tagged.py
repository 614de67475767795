import pytest

from core.dialects.text_calls.transcripts import TRANSCRIPTS
from luftpause.core.dialects.text_calls.tagged import MARKERS, reading_at


@pytest.mark.parametrize("reader", MARKERS)
def test_a_marker_alone_is_no_call(reader: str) -> None:
    marker = {
        "hermes": "<tool_call>",
        "function": "<function=f>",
        "python": "<|python_tag|>",
        "mistral": "[TOOL_CALLS]",
        "special": "<｜tool▁call▁begin｜>",
        "invoke": '<invoke name="f">',
        "harmony": "<|channel|>commentary to=f",
    }[reader]
    for rest in ("", " ", "{", "x y", '"name"', "[1]"):
        assert reading_at(marker + rest, 0, reader, cut=False) is None, rest


def test_a_reading_ends_behind_the_closing_tag() -> None:
    reply = TRANSCRIPTS["hermes 3"].reply
    reading = reading_at(reply + "rest", 0, "hermes", cut=False)
    assert reading is not None
    assert reading[1] == len(reply)


def test_a_value_may_lack_its_closing_tag() -> None:
    reading = reading_at("<function=f><parameter=a>1<parameter=b>2</function>", 0, "function", cut=False)
    assert reading is not None
    assert reading[0][0].arguments == '{"a": "1", "b": "2"}'


def test_a_call_without_arguments_has_none() -> None:
    for text, reader in (
        ("<function=f></function>", "function"),
        ('<invoke name="f"></invoke>', "invoke"),
        ("<tool_call>f</tool_call>", "hermes"),
    ):
        reading = reading_at(text, 0, reader, cut=False)
        assert reading is not None
        assert reading[0][0].arguments == "{}"


def test_a_value_without_its_end_is_no_call() -> None:
    assert reading_at("<tool_call>f<arg_key>a</arg_key><arg_value>1", 0, "hermes", cut=False) is None
    assert reading_at('<invoke name="f"><parameter name="a">1', 0, "invoke", cut=False) is None
