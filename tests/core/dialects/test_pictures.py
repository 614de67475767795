"""Pictures are counted by their size, in each dialect's own form, and their bytes are no text."""

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from luftpause.core.dialects.pictures import (
    LOW_TOKENS,
    NO_PICTURES,
    PICTURES_MAX,
    USUAL_TOKENS,
    by_area,
    in_tiles_of_512,
    in_tiles_of_768,
    pictures_in,
)

PAGE = b64encode((Path(__file__).parents[3] / "docs" / "pictures" / "page-dark.png").read_bytes()).decode()
CHAT, RESPONSES, MESSAGES, GEMINI = "chat", "responses", "messages", "gemini"
LINK = "https://pictures.invalid/a.png"
DATA_URL = f"data:image/png;base64,{PAGE}"
OPENAI, ANTHROPIC, GOOGLE = in_tiles_of_512(1280, 860), by_area(1280, 860), in_tiles_of_768(1280, 860)

INLINE = {
    CHAT: ({"type": "image_url", "image_url": {"url": DATA_URL}}, OPENAI),
    RESPONSES: ({"type": "input_image", "image_url": DATA_URL}, OPENAI),
    MESSAGES: ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PAGE}}, ANTHROPIC),
    GEMINI: ({"inlineData": {"mimeType": "image/png", "data": PAGE}}, GOOGLE),
}
LINKED = {
    CHAT: {"type": "image_url", "image_url": {"url": LINK}},
    RESPONSES: {"type": "input_image", "image_url": LINK},
    MESSAGES: {"type": "image", "source": {"type": "url", "url": LINK}},
    GEMINI: {"fileData": {"mimeType": "image/png", "fileUri": LINK}},
}


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def spaced(value: object) -> bytes:
    return json.dumps(value).encode()


def with_slashes_escaped(value: object) -> bytes:
    return json.dumps(value).replace("/", "\\/").encode()


def other_way_round(value: object) -> bytes:
    """Members in another order."""

    def turned(part: object) -> object:
        if isinstance(part, dict):
            return {name: turned(each) for name, each in reversed(part.items())}
        return [turned(each) for each in part] if isinstance(part, list) else part

    return json.dumps(turned(value)).encode()


WRITERS = (compact, spaced, with_slashes_escaped, other_way_round)


@pytest.mark.parametrize("write", WRITERS, ids=[write.__name__ for write in WRITERS])
@pytest.mark.parametrize("dialect", INLINE)
def test_a_picture_in_a_request_counts_by_its_size_and_its_bytes_are_no_text(
    dialect: str, write: Callable[[object], bytes]
) -> None:
    part, tokens = INLINE[dialect]
    body = write({"model": "m", "messages": [{"role": "user", "content": [{"text": "what is it?"}, part, part]}]})
    found = pictures_in(body, dialect)
    assert found.tokens == 2 * tokens
    text = len(body) - found.size
    assert 2 * len(PAGE) <= found.size + 2 * PAGE.count("/") < len(body) + 2 * PAGE.count("/")
    assert text < 700


@pytest.mark.parametrize("write", WRITERS, ids=[write.__name__ for write in WRITERS])
@pytest.mark.parametrize("dialect", LINKED)
def test_a_picture_that_is_pointed_at_is_of_a_usual_size(dialect: str, write: Callable[[object], bytes]) -> None:
    body = write({"model": "m", "messages": [{"content": [LINKED[dialect], INLINE[dialect][0], LINKED[dialect]]}]})
    assert pictures_in(body, dialect).tokens == INLINE[dialect][1] + 2 * USUAL_TOKENS


def test_low_detail_is_cheap_and_what_cannot_be_read_is_usual() -> None:
    low = {"type": "image_url", "image_url": {"url": DATA_URL, "detail": "low"}}
    assert pictures_in(spaced([low]), CHAT).tokens == LOW_TOKENS
    for data in ("", "!", "AAAA", "data:image", "data:image/png;base64,", "data:image/svg+xml;utf8,<svg/>"):
        part = {"type": "image_url", "image_url": {"url": data if data.startswith("data") else f"data:image/x,{data}"}}
        assert pictures_in(spaced([part]), CHAT).tokens == USUAL_TOKENS, data


@pytest.mark.parametrize("dialect", INLINE)
def test_what_is_no_picture_is_text(dialect: str) -> None:
    quoted = json.dumps(INLINE[dialect][0])
    for body in (
        b"",
        b"{}",
        b'"image_url" "image/',
        spaced({"content": 'an "image_url" and image/png'}),
        spaced(quoted),
    ):
        assert pictures_in(body, dialect) == NO_PICTURES, body[:80]


@pytest.mark.parametrize("dialect", INLINE)
def test_a_body_that_ends_anywhere_breaks_nothing(dialect: str) -> None:
    body = spaced([LINKED[dialect], INLINE[dialect][0]])
    for cut in (*range(300), *range(len(body) - 40, len(body))):
        found = pictures_in(body[:cut], dialect)
        assert 0 <= found.size <= cut


def test_no_more_pictures_are_looked_for_than_a_request_may_have() -> None:
    many = spaced([LINKED[CHAT]] * (PICTURES_MAX + 5))
    assert pictures_in(many, CHAT).tokens == PICTURES_MAX * USUAL_TOKENS


@pytest.mark.parametrize(
    ("rule", "size", "tokens"),
    [
        (in_tiles_of_512, (512, 512), 255),
        (in_tiles_of_512, (1024, 1024), 765),
        (in_tiles_of_512, (2048, 4096), 1105),
        (by_area, (200, 200), 53),
        (by_area, (1000, 1000), 1333),
        (by_area, (4000, 4000), 1600),
        (by_area, (1, 1), 1),
        (in_tiles_of_768, (384, 384), 258),
        (in_tiles_of_768, (1536, 768), 516),
    ],
)
def test_the_rules_are_those_that_are_published(
    rule: Callable[[int, int], int], size: tuple[int, int], tokens: int
) -> None:
    assert rule(*size) == tokens
