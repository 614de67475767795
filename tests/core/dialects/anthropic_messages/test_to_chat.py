import pytest

from core.dialects.anthropic_messages.requests import HELLO, assistant, result, said, text, use, user
from luftpause.core.dialects.request import BadRequestError

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
BARE = {"model": "m", "messages": [HELLO], "max_tokens": 9}


def test_little_is_said_of_little() -> None:
    assert said() == BARE
    assert said(max_tokens=None) == {"model": "m", "messages": [HELLO]}


def test_a_stream_is_asked_to_tell_its_usage() -> None:
    assert said(stream=True) == {**BARE, "stream": True, "stream_options": {"include_usage": True}}


def test_sampling_goes_on_as_it_was_written() -> None:
    sampling = {"temperature": 0.1, "top_p": 1e-7, "top_k": 40}

    assert said(**sampling, stop_sequences=["a", "b"]) == {**BARE, **sampling, "stop": ["a", "b"]}
    assert said(temperature=None, stop_sequences=[]) == BARE


@pytest.mark.parametrize(
    "members",
    [
        {"metadata": {"user_id": "u"}},
        {"service_tier": "auto", "inference_geo": None, "speed": "fast", "user_profile_id": "p"},
        {"cache_control": {"type": "ephemeral"}, "diagnostics": {}, "container": None, "mcp_servers": []},
        {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}},
        {"thinking": {"type": "adaptive", "display": "omitted"}},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        {"thinking": None, "output_config": None, "tool_choice": None, "tools": None, "system": None},
        {"invented_later": {"deep": [1]}},
        {"output_config": {"effort": "odd"}},
    ],
)
def test_what_the_engine_need_not_know_is_left_out(members: dict[str, object]) -> None:
    assert said(**members) == BARE


@pytest.mark.parametrize(
    ("effort", "there"), [("low", "low"), ("medium", "medium"), ("high", "high"), ("xhigh", "high"), ("max", "high")]
)
def test_effort(effort: str, there: str) -> None:
    assert said(output_config={"effort": effort})["reasoning_effort"] == there


def test_no_thinking_is_said_to_the_template() -> None:
    assert said(thinking={"type": "disabled"}, output_config={"effort": "high"}) == {
        **BARE,
        "chat_template_kwargs": {"enable_thinking": False},
    }


@pytest.mark.parametrize("member", ["output_config", "output_format"])
def test_the_form_of_the_answer(member: str) -> None:
    wanted: object = {"type": "json_schema", "schema": SCHEMA}

    assert said(**{member: {"format": wanted} if member == "output_config" else wanted})["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
    }


def test_an_answer_that_was_begun_is_gone_on_with() -> None:
    flags = {"continue_final_message": True, "add_generation_prompt": False}

    assert said(HELLO, assistant(text("It is"))).items() >= flags.items()
    assert not said(HELLO, assistant(use("a")), user(result("a", "x"))).keys() & flags.keys()
    assert not said(HELLO, assistant(text("I look"), use("a"))).keys() & flags.keys()


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"mcp_servers": [{"type": "url"}]}, "mcp_servers"),
        ({"container": "c_1"}, "container"),
        ({"max_tokens": 0}, "`max_tokens` is 0"),
        ({"output_config": {"format": {"type": "regex"}}}, "format 'regex'"),
        ({"output_format": {"type": "json_schema"}}, "format 'json_schema'"),
        ({"messages": []}, "`messages` is empty"),
    ],
)
def test_what_cannot_be_said_is_refused_by_name(members: dict[str, object], named: str) -> None:
    with pytest.raises(BadRequestError, match=named):
        said(**members)


def test_a_whole_number_with_a_fraction_of_nothing_is_one() -> None:
    asked = said(max_tokens=7.0, top_k=40.0, temperature=1.0)
    assert (repr(asked["max_tokens"]), repr(asked["top_k"]), asked["temperature"]) == ("7", "40", 1.0)
    with pytest.raises(BadRequestError, match="max_tokens"):
        said(max_tokens=7.5)
