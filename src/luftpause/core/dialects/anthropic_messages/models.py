"""What a client of Anthropic's is told of the models that are served."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

_UNKNOWN_DAY: Final = "1970-01-01T00:00:00Z"
"""When a model was made nobody tells us; the member must be there."""


def listed(models: Sequence[str]) -> bytes:
    """Return the answer to a question for all models; one page holds them."""
    first, last = (models[0], models[-1]) if models else (None, None)
    cards = [_card(model) for model in models]
    return msgspec.json.encode({"data": cards, "has_more": False, "first_id": first, "last_id": last})


def described(model: str) -> bytes:
    """Return the answer to a question for one model."""
    return msgspec.json.encode(_card(model))


def _card(model: str) -> Mapping[str, object]:
    return {"type": "model", "id": model, "display_name": model, "created_at": _UNKNOWN_DAY}
