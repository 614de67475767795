"""What it is worth to keep a run's KV: arithmetic over what was measured, and guesses until something was."""

from typing import Final

from luftpause.core.scheduling.residency.kv_state import KvCosts

NEWEST_WEIGHT: Final = 0.5

TOKENS_MIN: Final = 128
"""Less is computed again before anybody notices."""

MISSES_MAX: Final = 3
"""After so many restores in a row that brought nothing, a model's KV is not kept any more: some cannot be restored."""

PREFILL_S: Final = 1e-3
SAVE_S: Final = 5e-5
RESTORE_S: Final = 5e-5
SIZE: Final = 64 * 1024.0
"""For a token, before anything was measured: a small model on a modest machine."""


def gain_s(costs: KvCosts, tokens: int) -> float:
    """Return how many seconds are saved by keeping the KV of so many tokens rather than computing it again."""
    prefill_s = PREFILL_S if costs.prefill_s is None else costs.prefill_s
    save_s = SAVE_S if costs.save_s is None else costs.save_s
    restore_s = _restore_s(costs)
    return tokens * (prefill_s - save_s - restore_s)


def kept_gain_s(costs: KvCosts, tokens: int) -> float:
    """Return how many seconds KV in a file still saves: it is written already."""
    prefill_s = PREFILL_S if costs.prefill_s is None else costs.prefill_s
    return tokens * (prefill_s - _restore_s(costs))


def size_of(costs: KvCosts, tokens: int) -> int:
    """Return how large the file of so many tokens is thought to be, bytes."""
    return int(tokens * (SIZE if costs.size is None else costs.size))


def after_save(costs: KvCosts, tokens: int, size: int, took_s: float) -> KvCosts:
    """Return what is known after one save."""
    if tokens <= 0:
        return costs
    return costs._replace(save_s=_mean(costs.save_s, took_s / tokens), size=_mean(costs.size, size / tokens))


def after_prefill(costs: KvCosts, per_token_s: float) -> KvCosts:
    """Return what is known after an engine told what its prompts cost; 0: it did not."""
    return costs if per_token_s <= 0 else costs._replace(prefill_s=_mean(costs.prefill_s, per_token_s))


def after_restore(costs: KvCosts, tokens: int, took_s: float | None, cached: int | None) -> KvCosts:
    """Return what is known after one restore.

    Args:
        costs: what was known.
        tokens: in the file.
        took_s: seconds; None: it failed.
        cached: tokens of the prompt that the engine then did not compute; None where it does not say.
    """
    is_miss = took_s is None or (cached is not None and cached * 2 < tokens)
    restore_s = costs.restore_s if took_s is None or tokens <= 0 else _mean(costs.restore_s, took_s / tokens)
    return costs._replace(restore_s=restore_s, misses=costs.misses + 1 if is_miss else 0)


def _restore_s(costs: KvCosts) -> float:
    if costs.restore_s is not None:
        return costs.restore_s
    return RESTORE_S if costs.save_s is None else costs.save_s  # the same bytes, the other way


def _mean(known: float | None, seen: float) -> float:
    return seen if known is None else known + NEWEST_WEIGHT * (seen - known)
