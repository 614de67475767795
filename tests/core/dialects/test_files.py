"""What becomes of files in a conversation."""

import json
from base64 import b64encode
from typing import Any

import pytest

from luftpause.core.dialects.files import file_in_chat, holds_files, media_type_at, named, text_at, text_of, unreadable


def base64(held: bytes) -> str:
    return b64encode(held).decode()


@pytest.mark.parametrize(
    "media_type",
    [
        "text/plain",
        "TEXT/csv; charset=utf-8",
        "application/json",
        "application/xml",
        "image/svg+xml",
        "a/b+json",
        "",
    ],
)
def test_a_file_that_is_text_is_read(media_type: str) -> None:
    assert text_of(media_type, base64("\ufeffgrüße".encode())) == "grüße"


@pytest.mark.parametrize("media_type", ["application/pdf", "image/png", "application/octet-stream", "nonsense"])
def test_a_file_that_is_told_to_be_something_else_is_not(media_type: str) -> None:
    assert text_of(media_type, base64(b"red")) is None


@pytest.mark.parametrize("held", [b"%PDF-1.7", b"a\0b", b"\xff\xfe"])
def test_a_file_of_an_untold_type_has_to_look_like_text(held: bytes) -> None:
    assert text_of("", base64(held)) is None


@pytest.mark.parametrize("data", ["ä", "abc", base64(b"\xff"), "%%%", "cmVk%", "cmU=cmU=", "cmVk_w=="])
def test_what_cannot_be_decoded_is_no_text(data: str) -> None:
    assert text_of("text/plain", data) is None


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("data:text/plain;base64,cmVk", "red"),
        ("data:text/plain;charset=utf-8;base64,cmVk", "red"),
        ("data:;base64,cmVk", "red"),
        ("data:,red%20ink", None),
        ("data:text/csv,a,b", None),
        ("data:application/pdf;base64,cmVk", None),
        ("data:image/png,red", None),
        ("data:text/plain", None),
        ("https://papers.example/a,b", None),
        ("", None),
    ],
)
def test_an_address_that_is_its_own_content_is_read_and_no_other(url: str, text: str | None) -> None:
    assert text_at(url) == text


def test_a_file_is_named_to_people_in_a_few_words() -> None:
    assert media_type_at("data:application/pdf;base64,x") == "application/pdf"
    assert media_type_at("https://papers.example/a.pdf") == ""
    assert named(None) == "a file"
    assert named("a" * 200, "b/c") == f"the file {'a' * 100!r} of type 'b/c'"
    assert str(unreadable("it holds a file")).startswith(
        "it holds a file, and this model's engine reads no files: send"
    )


def messages(*blocks: object) -> dict[str, list[object]]:
    return {
        "messages": [{"role": "user", "content": "hi"}, {"role": "user", "content": list(blocks)}, {"role": "user"}]
    }


def result(*blocks: object) -> dict[str, object]:
    return {"type": "tool_result", "tool_use_id": "a", "content": list(blocks)}


def items(part: object) -> dict[str, object]:
    return {"input": [{"role": "user", "content": "hi"}, {"role": "user", "content": [part]}, {"type": "reasoning"}]}


DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "red"}}
TEXT = {"type": "text", "text": 'a "document"'}
CALL = {"type": "tool_use", "id": "a", "name": "document", "input": {"type": "document", "content": [DOCUMENT]}}


@pytest.mark.parametrize(
    ("dialect", "asked", "found"),
    [
        ("messages", messages(TEXT, DOCUMENT), True),
        ("count_tokens", messages(DOCUMENT), True),
        ("messages", messages({"type": "search_result", "content": []}), True),
        ("messages", messages({"type": "container_upload", "file_id": "f"}), True),
        ("messages", messages({"type": "server_tool_use", "id": "s"}), True),
        ("messages", messages({"type": "web_search_tool_result", "content": []}), True),
        ("messages", messages(result(TEXT, DOCUMENT)), True),
        ("messages", messages({"type": "unheard-of"}), False),
        ("messages", messages(TEXT, CALL, result(TEXT), {"type": "thinking", "thinking": "hm"}), False),
        (
            "messages",
            messages({"type": "tool_result", "tool_use_id": "a", "content": "document"}, {"type": "image"}),
            False,
        ),
        ("messages", {"messages": 7}, False),
        ("messages", {}, False),
        ("responses", items({"type": "input_file", "file_id": "f"}), True),
        ("responses", {"input": [{"type": "function_call_output", "output": [{"type": "input_file"}]}]}, True),
        ("responses", items({"type": "input_text", "text": "input_file"}), False),
        ("responses", {"input": "input_file"}, False),
        ("chat", messages({"type": "file"}), False),
        ("gemini", messages(DOCUMENT), False),
    ],
)
def test_a_request_that_holds_a_file_is_known(dialect: str, asked: dict[str, Any], found: bool) -> None:
    assert holds_files(dialect, json.dumps(asked).encode()) == found


CUT = "\ud83d"
"""Half of an emoji, as clients make it that cut texts anywhere."""
ODD = ("cut " + CUT, {"an": "object"}, 7, None, ["a text"], [{"type": 7}], [{"type": "text", "text": CUT}])


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_a_file_is_known_whatever_stands_beside_it(odd: object) -> None:
    """Or an engine would leave it out without a word."""
    beside = {"messages": [{"role": "user", "content": odd}, *messages(DOCUMENT)["messages"]]}
    assert holds_files("messages", json.dumps(beside).encode())
    assert holds_files("messages", json.dumps(messages({"type": "tool_result", "content": odd}, DOCUMENT)).encode())
    given = [{"content": odd}, {"output": odd}, {"content": [{"type": "input_file"}]}]
    assert holds_files("responses", json.dumps({"input": given}).encode())


def test_the_file_of_a_chat_with_a_cut_text_is_named() -> None:
    assert file_in_chat(json.dumps(messages({"type": "text", "text": CUT}, {"type": "file"})).encode())


@pytest.mark.parametrize(
    "body", [b"", b"[", b"\xff", b'{"messages":[{"content":[{"type":7}]}]}', b'{"messages":' + b"[" * 90_000]
)
def test_what_cannot_be_read_is_left_to_the_engine(body: bytes) -> None:
    assert not holds_files("messages", body)
    assert not holds_files("responses", body.replace(b"messages", b"input"))
    assert file_in_chat(body) == ""


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,x"}},
            "`messages[1]` holds the file 'a.pdf' of type 'application/pdf'",
        ),
        ({"type": "file", "file": {"file_id": "f"}}, "`messages[1]` holds a file"),
        ({"type": "file"}, "`messages[1]` holds a file"),
        (TEXT, ""),
    ],
)
def test_the_file_of_a_chat_is_named(part: dict[str, Any], said: str) -> None:
    assert file_in_chat(json.dumps(messages(TEXT, part)).encode()) == said
