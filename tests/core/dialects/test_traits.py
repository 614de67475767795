"""What is in a request, whatever its dialect."""

import pytest

from luftpause.core.dialects.traits import traits_of


@pytest.mark.parametrize(
    "body",
    [
        b'{"content":[{"type":"image_url","image_url":{"url":"http://x"}}]}',
        b'{"content":[{"type": "input_image", "image_url": "http://x"}]}',
        b'{"content":[{"type" : "image","source":{"type":"base64","media_type":"image/png"}}]}',
        b'{"parts":[{"inlineData":{"mimeType": "image/jpeg","data":"AAAA"}}]}',
        b'{"parts":[{"inline_data":{"mime_type":"image/jpeg","data":"AAAA"}}]}',
    ],
)
def test_a_picture_is_found_in_every_dialect(body: bytes) -> None:
    assert traits_of(body).images


def test_words_about_pictures_are_none() -> None:
    assert not traits_of(rb'{"content":"send \"type\": \"image\" or image/png"}').images
    assert not traits_of(b'{"content":[{"type":"text","text":"an image"}]}').images


def test_code_is_what_stands_between_fences() -> None:
    assert traits_of(b"").code_share == 0
    assert traits_of(b"a" * 100).code_share == 0
    assert traits_of(b"a" * 47 + b"```" + b"b" * 47 + b"```").code_share == 47
    assert traits_of(b"a" * 7 + b"```" + b"b" * 90).code_share == 90
