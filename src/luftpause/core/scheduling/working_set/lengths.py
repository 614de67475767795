"""How many tokens a turn has before its engine says so: what was measured of its run, and bytes for what is new.

Only what engines report teaches. Knows one model's texts at a time.
"""

from typing import Final

from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.state import Run
from luftpause.core.scheduling.working_set.state import Lengths

WEIGHT: Final = 0.1
"""Of one observation among all before it."""

RATIO_MIN: Final = 0.25
RATIO_MAX: Final = 64.0
"""Bytes per token beyond these are no text: a picture in the body, or a prompt that the engine has elsewhere."""


def prompt_tokens(lengths: Lengths, run: Run | None, arrival: TurnArrived) -> int:
    """Return how long a turn's prompt is, as far as anybody can tell; a shorter body than before was rewritten."""
    ratio = lengths.bytes_per_token
    if run is None or not run.measure.prompt:
        return int(arrival.prompt_bytes / ratio)
    measure = run.measure
    if not arrival.prompt_bytes:
        return measure.context
    more = arrival.prompt_bytes - measure.prompt_bytes
    return measure.prompt + int(more / ratio) if more >= 0 else int(arrival.prompt_bytes / ratio)


def after_usage(lengths: Lengths, prompt_bytes: int, usage: Usage) -> Lengths:
    """Return what is known of a model's texts after one turn."""
    ratio, reply = lengths
    if prompt_bytes > 0 and usage.prompt_tokens > 0:
        seen = prompt_bytes / usage.prompt_tokens
        if RATIO_MIN <= seen <= RATIO_MAX:
            ratio += WEIGHT * (seen - ratio)
    if usage.completion_tokens > 0:
        reply += WEIGHT * (usage.completion_tokens - reply)
    return Lengths(ratio, reply)
