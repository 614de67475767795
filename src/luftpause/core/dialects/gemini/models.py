"""What a Gemini client is told of the models that are served."""

from collections.abc import Iterable, Mapping

import msgspec


def listed(models: Iterable[str]) -> bytes:
    """Return the answer to a question for all models; one page holds them."""
    return msgspec.json.encode({"models": [_card(model) for model in models]})


def described(model: str) -> bytes:
    """Return the answer to a question for one model."""
    return msgspec.json.encode(_card(model))


def _card(model: str) -> Mapping[str, object]:
    """Return what is known of a model: how many tokens it takes is its engine's affair."""
    methods = ["generateContent", "streamGenerateContent", "countTokens"]
    return {
        "name": f"models/{model}",
        "baseModelId": model,
        "version": "",
        "displayName": model,
        "supportedGenerationMethods": methods,
    }
