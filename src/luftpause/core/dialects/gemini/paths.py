"""What a Gemini client addresses: the path names the model, and whether the answer is to come piece by piece."""

import re
from typing import Final

from msgspec import Struct

from luftpause.core.dialects.request import model_in
from luftpause.core.model.ids import ModelName

_PATH: Final = re.compile(r"/v1(?:beta)?/models/(?P<model>.*):(?P<stream>generateContent|streamGenerateContent)")
_COUNTED: Final = re.compile(r"/v1(?:beta)?/models/(?P<model>.*):countTokens")
_VERBS: Final = ("Content", "Contents", "Tokens", "LongRunning", "predict")
"""How all that can be done with a model ends; no tag of a model does."""
_AS_EVENTS: Final = (b"alt=sse", b"$alt=sse", b"%24alt=sse")


class Called(Struct, frozen=True):
    """What a path asks for."""

    model: ModelName
    stream: bool


def is_called(path: str) -> bool:
    """Say whether content is generated at a path, which is without its query and percent-decoded."""
    return _PATH.fullmatch(path) is not None


def called(path: str) -> Called:
    """Return what such a path asks for.

    Raises:
        BadRequestError: what it names could be no model.
    """
    found = _PATH.fullmatch(path)
    assert found is not None, "only paths that are known come here"
    return Called(model_in({"model": found["model"]}), found["stream"].startswith("stream"))


def is_counted(path: str) -> bool:
    """Say whether the tokens of a conversation are counted at a path."""
    return _COUNTED.fullmatch(path) is not None


def counted_model(path: str) -> ModelName:
    """Return the model whose tokens such a path means.

    Raises:
        BadRequestError: what it names could be no model.
    """
    found = _COUNTED.fullmatch(path)
    assert found is not None, "only paths that are known come here"
    return model_in({"model": found["model"]})


def is_below(path: str) -> bool:
    """Say whether whoever asks for a path is a Gemini client, also where nothing is there: some ask below `/v1` too."""
    above, _, verb = path.rpartition(":")
    return path.startswith("/v1beta/") or ("/models/" in above and verb.endswith(_VERBS))


def wants_events(query: bytes) -> bool:
    """Say whether a stream is to come as server-sent events, else as one JSON array."""
    return any(each in _AS_EVENTS for each in query.split(b"&"))
