import gzip

import pytest

from luftpause.core.dialects.engine_refusals import (
    LOCATION_CHARS_MAX,
    MESSAGE_CHARS_MAX,
    EngineRefusal,
    is_too_long,
    is_unseen,
    read_refusal,
    redirected,
)


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        (
            b'{"error": {"message": "no", "type": "bad", "code": "c", "param": "p"}}',
            EngineRefusal(message="no", type="bad", code="c", param="p"),
        ),
        (b'{"error": {"message": "no", "code": 400}}', EngineRefusal(message="no")),
        (b'{"error": "no"}', EngineRefusal(message="no")),
        (b'{"object": "error", "message": "no", "type": "bad"}', EngineRefusal(message="no", type="bad")),
        (b'{"detail": "no"}', EngineRefusal(message="no")),
        (b" plain \n", EngineRefusal(message="plain")),
        ("é\n\tü".encode()[:-1], EngineRefusal(message="é\n\t\ufffd")),
        (gzip.compress(b"no", mtime=0), EngineRefusal(message="the engine answered with status 418")),
        (b"", EngineRefusal(message="the engine answered with status 418")),
        (b"x" * 9000, EngineRefusal(message="x" * MESSAGE_CHARS_MAX)),
    ],
)
def test_a_refusal_is_read_whatever_its_shape(body: bytes, refusal: EngineRefusal) -> None:
    assert read_refusal(418, body) == refusal


def test_a_conversation_that_no_longer_fits_is_known_by_its_words_or_its_code() -> None:
    assert is_too_long("exceeds the available Context Size")
    assert is_too_long("no", "context_length_exceeded")
    assert not is_too_long("no")


def test_an_engine_that_reads_texts_only_is_known_by_its_words() -> None:
    hint = "if this is unexpected, you may need to provide the mmproj"
    assert is_unseen(f"image input is not supported - hint: {hint}")
    assert is_unseen("This model does not support audio input")
    assert not is_unseen("the image is too large")


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        (b"http://host:81/v1/x", "http://host:81/v1/x"),
        (b"https://me:secret@host/v1?key=secret#secret", "https://host/v1"),
        (b"me:secret@host", "host"),
        (b"//me:secret@host/x", "//host/x"),
        (b"/v1/@x?y", "/v1/@x"),
        (b"", "nowhere"),
        (b"?secret", "nowhere"),
        (b"h\xfft\x00p", "h\\xfft\\x00p"),
        (b"x" * 9000, "x" * LOCATION_CHARS_MAX),
    ],
)
def test_an_address_elsewhere_is_shown_without_what_may_be_secret(location: bytes, shown: str) -> None:
    said = f"it redirects to {shown} (status 302), which is not followed: correct the replica's url"
    assert redirected(302, location) == said
