"""How many tokens a turn has before its engine says so: what was measured of its run, and bytes for what is new.

Only what engines report teaches. Knows one model's texts at a time.
"""

from typing import Final

from luftpause.core.model.charges import TOKENS_MAX
from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.state import Run
from luftpause.core.scheduling.working_set.state import Lengths, Measure

WEIGHT: Final = 0.1
"""Of one observation among all before it."""

ANSWER_MIN: Final = 16
AT_THE_END: Final = 0.95

RATIO_MIN: Final = 0.25
RATIO_MAX: Final = 64.0
"""Bytes per token beyond these are no text: sound in the body, or a prompt that the engine has elsewhere."""


def makes_sense(usage: Usage) -> bool:
    """Say whether an engine's report can be true."""
    return 0 < usage.prompt_tokens <= TOKENS_MAX and 0 <= usage.completion_tokens <= TOKENS_MAX


def prompt_tokens(lengths: Lengths, run: Run | None, arrival: TurnArrived) -> int:
    """Return how long a turn's prompt is, as far as anybody can tell; one with less in it than before was rewritten."""
    ratio, text_bytes, pictures = lengths.bytes_per_token, arrival.text_bytes, _pictures_of(arrival)
    if run is None or not run.measure.prompt:
        return int(text_bytes / ratio) + pictures
    measure = run.measure
    if not text_bytes:
        return measure.context
    more, more_pictures = text_bytes - measure.text_bytes, pictures - measure.pictures
    if more < 0 or more_pictures < 0:
        return int(text_bytes / ratio) + pictures
    return measure.prompt + int(more / ratio) + more_pictures


def measured(arrival: TurnArrived, prompt: int, context: int) -> Measure:
    """Return what a turn came to whose prompt, and that with its answer, have so many tokens."""
    return Measure(arrival.text_bytes, prompt, context, _pictures_of(arrival))


def after_usage(lengths: Lengths, arrival: TurnArrived, usage: Usage) -> Lengths:
    """Return what is known of a model's texts after one turn; beside pictures, which are guessed, it tells nothing."""
    ratio, reply = lengths.bytes_per_token, lengths.reply
    if arrival.prompt_bytes > 0 and usage.prompt_tokens > 0 and not arrival.picture_tokens:
        seen = arrival.prompt_bytes / usage.prompt_tokens
        if RATIO_MIN <= seen <= RATIO_MAX:
            ratio += WEIGHT * (seen - ratio)
    if usage.completion_tokens > 0:
        reply += WEIGHT * (usage.completion_tokens - reply)
    return Lengths(ratio, reply, lengths.streamed)


def after_answer(lengths: Lengths, usage: Usage, first_s: float | None, whole_s: float) -> Lengths:
    """Return what is known of a model's texts after an answer whose first token came then; short ones tell nothing."""
    if usage.completion_tokens < ANSWER_MIN:
        return lengths
    seen = 1.0 if first_s is not None and first_s < AT_THE_END * whole_s else 0.0
    return lengths._replace(streamed=lengths.streamed + WEIGHT * (seen - lengths.streamed))


def _pictures_of(arrival: TurnArrived) -> int:
    return min(max(0, arrival.picture_tokens), TOKENS_MAX)


def service_of(prompt: int, cached: int, reply: int) -> int:
    """Return what a turn is worth, tenths of a token: a prompt's token 1, one found in the cache 0.1, a reply's 2."""
    found = min(prompt, cached)
    return 10 * (prompt - found) + found + 20 * reply
