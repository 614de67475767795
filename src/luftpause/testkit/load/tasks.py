"""What the agents of a load are told: tasks and contexts of made-up words, different for every run. Pure."""

import random
from collections.abc import Iterator

_SUBJECTS = ("Danube", "Rhine", "Vistula", "Loire", "Ebro", "Po", "Tagus", "Oder", "Elbe", "Seine", "Drava", "Tisza")
_QUESTIONS = ("where it rises", "how long it is", "which countries it crosses", "where it ends", "what it carries")
_WORDS = (
    *("river", "bank", "water", "stone", "bridge", "ferry", "lock", "weir", "mill", "reed", "gauge", "flood"),
    *("delta", "spring", "valley", "basin", "channel", "harbour", "barge", "rope", "lantern", "ledger", "toll"),
    *("market", "grain", "timber", "salt", "copper", "clay", "glass", "wool", "paper", "letter", "winter", "summer"),
)


def task_text(number: int, tool_calls: int) -> str:
    """Return the task of a run; the marker tells the fake engine how many rounds of tools to play."""
    subject = _SUBJECTS[number % len(_SUBJECTS)]
    question = _QUESTIONS[number // len(_SUBJECTS) % len(_QUESTIONS)]
    return f"Find out about the {subject}: {question}. Answer in two sentences. [tools:{tool_calls}]"


def context_text(run: str, chars: int) -> str:
    """Return a document of that many characters that no other run has; "" for 0."""
    text = f"Notes of {run}: {' '.join(_words(run, chars))}"
    return text[:chars]


def tool_text(run: str, call: int, chars: int) -> str:
    """Return the result of a simulated tool call."""
    return " ".join(_words(f"{run}/{call}", chars))[:chars]


def _words(seed: str, chars: int) -> Iterator[str]:
    rng = random.Random(seed)  # noqa: S311 - filler
    while chars > 0:
        word = rng.choice(_WORDS)
        chars -= len(word) + 1
        yield word
