import json

from luftpause.core.dialects.chat_documents import Used
from luftpause.core.dialects.openai_responses.response import response_object, usage_object, written_event
from luftpause.core.model.turns import Usage


def test_a_response_has_every_field_and_the_later_ones_win() -> None:
    response = response_object({"model": "m", "temperature": 0.5}, id="resp_1", status="completed", temperature=1)
    assert (response["id"], response["object"], response["model"], response["temperature"]) == (
        "resp_1",
        "response",
        "m",
        1,
    )
    assert {"created_at", "output", "error", "incomplete_details", "usage", "tools", "store"} < response.keys()


def test_usage_counts_what_the_engine_told() -> None:
    usage = usage_object(Used(Usage(prompt_tokens=7, completion_tokens=3), reasoning_tokens=2))
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (7, 3, 10)
    assert usage["output_tokens_details"] == {"reasoning_tokens": 2}


def test_usage_has_the_figures_that_the_engine_did_not_tell() -> None:
    usage = usage_object(Used(Usage(prompt_tokens=7, completion_tokens=3)))
    assert usage["input_tokens_details"] == {"cached_tokens": 0, "cache_write_tokens": 0}
    assert usage["output_tokens_details"] == {"reasoning_tokens": 0}


def test_an_event_is_a_name_and_one_line() -> None:
    event = written_event("response.x", 3, {"delta": "a\n\nb"})
    name, data, *rest = event.split(b"\n")
    assert (name, rest) == (b"event: response.x", [b"", b""])
    assert json.loads(data.removeprefix(b"data: ")) == {
        "type": "response.x",
        "sequence_number": 3,
        "delta": "a\n\nb",
    }
