import pytest

from luftpause.core.dialects.engine_refusals import (
    MESSAGE_CHARS_MAX,
    EngineRefusal,
    is_too_long,
    is_unseen,
    read_refusal,
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
