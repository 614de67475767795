"""What a client of OpenAI's is told of the models that are served."""

from collections.abc import Iterable, Mapping

import msgspec


def listed(models: Iterable[str]) -> bytes:
    """Return the answer to a question for all models."""
    return msgspec.json.encode({"object": "list", "data": [_card(model) for model in models]})


def described(model: str) -> bytes:
    """Return the answer to a question for one model."""
    return msgspec.json.encode(_card(model))


def _card(model: str) -> Mapping[str, object]:
    return {"id": model, "object": "model", "created": 0, "owned_by": "luftpause"}
