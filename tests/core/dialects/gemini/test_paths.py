import pytest

from luftpause.core.dialects.gemini.paths import Called, called, is_called, wants_events
from luftpause.core.dialects.request import BadRequestError
from luftpause.core.model.ids import ModelName


@pytest.mark.parametrize(
    ("path", "model", "stream"),
    [
        ("/v1beta/models/m:generateContent", "m", False),
        ("/v1/models/m:streamGenerateContent", "m", True),
        ("/v1beta/models/llama3:8b:streamGenerateContent", "llama3:8b", True),
        ("/v1beta/models/org/m-1.5:generateContent", "org/m-1.5", False),
        ("/v1beta/models/a b é:generateContent", "a b é", False),
    ],
)
def test_a_path_names_model_and_stream(path: str, model: str, stream: bool) -> None:
    assert is_called(path)
    assert called(path) == Called(ModelName(model), stream)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models",
        "/v1/models/m",
        "/v1beta/models/m:countTokens",
        "/v1beta/models/m:generateContent/",
        "/v2/models/m:generateContent",
        "/v1beta/m:generateContent",
    ],
)
def test_nothing_is_generated_elsewhere(path: str) -> None:
    assert not is_called(path)


@pytest.mark.parametrize("model", ["", "x" * 600])
def test_what_could_be_no_model_is_refused(model: str) -> None:
    with pytest.raises(BadRequestError, match="model"):
        called(f"/v1beta/models/{model}:generateContent")


@pytest.mark.parametrize(
    ("query", "events"),
    [(b"", False), (b"alt=sse", True), (b"key=x&alt=sse", True), (b"$alt=sse", True), (b"alt=json", False)],
)
def test_events_are_asked_for_in_the_query(query: bytes, events: bool) -> None:
    assert wants_events(query) == events
