import pytest

from core.dialects.gemini.exchanges import Object, messages_of, text, user
from luftpause.core.dialects.request import BadRequestError


def shown(part: Object) -> Object:
    (message,) = messages_of(user(text("look"), part))
    said: Object = message["content"][1]
    return said


@pytest.mark.parametrize(
    "blob",
    [
        {"inlineData": {"mimeType": "image/png", "data": "_-8="}},
        {"inline_data": {"mime_type": "image/png", "data": "/+8="}},
    ],
)
def test_a_picture_in_either_alphabet(blob: Object) -> None:
    assert shown(blob) == {"type": "image_url", "image_url": {"url": "data:image/png;base64,/+8="}}


def test_a_text_beside_it_hides_no_file() -> None:
    file = {"inlineData": {"mimeType": "text/plain", "data": "cmVk"}}
    (message,) = messages_of(user(text("look"), {"text": "", **file}))
    assert message["content"] == "look\n\nred"
    for holder in (user({"text": "look", **file}), {"role": "model", "parts": [{"text": "look", **file}]}):
        with pytest.raises(BadRequestError, match="a text and inline_data: each takes a part of its own"):
            messages_of(user(text("hi")), holder)


def test_a_picture_at_an_address() -> None:
    file = {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.org/a.jpg"}}
    assert shown(file) == {"type": "image_url", "image_url": {"url": "https://example.org/a.jpg"}}


@pytest.mark.parametrize(("kind", "name"), [("audio/wav", "wav"), ("audio/mp3", "mp3"), ("audio/mpeg", "mp3")])
def test_sound(kind: str, name: str) -> None:
    said = shown({"inlineData": {"mimeType": kind, "data": "AAAA"}})
    assert said == {"type": "input_audio", "input_audio": {"data": "AAAA", "format": name}}


@pytest.mark.parametrize(
    ("part", "what"),
    [
        ({"inlineData": {"mimeType": "application/pdf", "data": ""}}, "a file of type 'application/pdf'"),
        ({"fileData": {"mimeType": "image/png", "fileUri": "gs://bucket/a"}}, "no web address"),
        (
            {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.org/a"}},
            "of type 'video/mp4', and",
        ),
        ({"fileData": {"fileUri": "https://example.org/a"}}, "the file 'https://example.org/a', and this"),
    ],
)
def test_what_cannot_be_shown_is_refused(part: Object, what: str) -> None:
    with pytest.raises(BadRequestError, match=what):
        shown(part)
