import pytest

from core.dialects.anthropic_messages.requests import HELLO, messages_of, result, text, user
from luftpause.core.dialects.request import BadRequestError


def image(**source: object) -> dict[str, object]:
    return {"type": "image", "source": source}


def document(source: object, **members: object) -> dict[str, object]:
    return {"type": "document", "source": source, **members}


PDF = document({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="})


@pytest.mark.parametrize(
    ("block", "url"),
    [
        (image(type="base64", media_type="image/jpeg", data="QUJD"), "data:image/jpeg;base64,QUJD"),
        (image(type="url", url="https://pictures.example/a.png"), "https://pictures.example/a.png"),
    ],
)
def test_pictures_become_urls(block: object, url: str) -> None:
    assert messages_of(user(text("see"), block))[0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": url}},
    ]


@pytest.mark.parametrize(
    ("block", "content"),
    [
        (
            document({"type": "text", "media_type": "text/plain", "data": "red"}, title="T", context="C"),
            "T\n\nC\n\nred",
        ),
        (document({"type": "base64", "media_type": "text/markdown", "data": "cmVk"}, title="T"), "T\n\nred"),
        (document({"type": "content", "content": "red"}), "red"),
        (document({"type": "content", "content": [text("red"), text("blue")]}), "red\n\nblue"),
        ({"type": "search_result", "title": "T", "source": "s", "content": [text("red")]}, "T\n\nred"),
    ],
)
def test_documents_that_are_text_become_text(block: object, content: str) -> None:
    assert messages_of(user(block)) == [{"role": "user", "content": content}]


@pytest.mark.parametrize(
    ("block", "named"),
    [
        (image(type="file", file_id="f"), "source of type 'file'"),
        (PDF, "a file of type 'application/pdf', .* send the file's text"),
        (PDF | {"title": "a.pdf"}, "the file 'a.pdf' of type 'application/pdf'"),
        (
            document({"type": "url", "url": "https://papers.example/a.pdf"}),
            "a document at 'https://papers.example/a.pdf'",
        ),
        (document({"type": "file", "file_id": "f"}), "source of type 'file', .* send the file's text"),
        ({"type": "container_upload", "file_id": "f"}, "a file in a container"),
        (result("a", [PDF]), "a file of type 'application/pdf'"),
        ({"type": "image"}, "no readable source"),
        ({"type": "image", "source": 3}, "no readable source"),
        (result("a", 3), "no readable content"),
    ],
)
def test_what_no_engine_could_read_is_refused_by_name(block: object, named: str) -> None:
    with pytest.raises(BadRequestError, match=named):
        messages_of(user(block))


def test_an_empty_text_is_nothing() -> None:
    assert messages_of(user(text("")), HELLO) == [HELLO]
