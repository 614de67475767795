"""`/classify` of the fake engine, in vLLM's shape: labels with made-up but repeatable probabilities. Pure."""

import hashlib
import math
from collections.abc import Sequence

import msgspec

MENTIONED = 4.0
"""How much a label gains, in logits, when the text names it."""


class Classify(msgspec.Struct, frozen=True):
    """The body of a classify request."""

    model: str
    input: str | list[str]

    @property
    def texts(self) -> Sequence[str]:
        """The texts to classify, in order."""
        return [self.input] if isinstance(self.input, str) else self.input


def classification(index: int, text: str, labels: Sequence[str], seed: int) -> dict[str, object]:
    """Return one entry of `data`: the likeliest label and all probabilities, in order of the labels."""
    logits = [_logit(text, label, seed) for label in labels]
    scale = sum(math.exp(logit) for logit in logits)
    probabilities = [math.exp(logit) / scale for logit in logits]
    best = max(range(len(labels)), key=lambda at: probabilities[at])
    return {"index": index, "label": labels[best], "probs": probabilities, "num_classes": len(labels)}


def _logit(text: str, label: str, seed: int) -> float:
    digest = hashlib.blake2b(f"{seed}:{label}:{text}".encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "big") / 2**31 + (MENTIONED if label.lower() in text.lower() else 0.0)
