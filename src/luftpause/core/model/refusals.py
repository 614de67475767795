"""Why a turn is turned away before any engine sees it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

MODELS_NAMED_MAX: Final = 10
"""More models than these are not listed in a refusal."""


class RefusalReason(Enum):
    """Each value is the `code` that a client sees."""

    UNKNOWN_MODEL = "unknown_model"
    MODEL_NEEDED = "model_needed"
    """The request names no model, and there is more than one to choose from (400)."""
    UNKNOWN_RUN = "unknown_run"
    """The request names a run of another principal: to this one there is no such run (404)."""
    RUN_ENDED = "run_ended"
    """The run was ended while its turn was held (409)."""
    SCHEDULER_FAULT = "scheduler_fault"
    SHUTTING_DOWN = "shutting_down"
    EXPIRED = "expired"
    LOAD_FAILED = "model_load_failed"
    """The model was loaded for this turn, and that failed (502)."""
    MODEL_FAILING = "model_failing"
    """The model failed several times in a row and is left alone for a while (503 with Retry-After)."""
    INSUFFICIENT_MEMORY = "insufficient_memory"
    """The model cannot fit beside what stays, whatever is unloaded (503)."""
    MODEL_UNLOADED = "model_unloaded"
    """An operator had the model unloaded while the turn waited for it (503)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refusal and its sentence; the dialect renders both into its own error shape.

    `retry_after_s`: when it makes sense to ask again, seconds; None where nobody knows.
    """

    reason: RefusalReason
    message: str
    retry_after_s: float | None = None


def models_named(models: Iterable[str]) -> str:
    """Return models as a refusal lists them."""
    names = sorted(models)
    return ", ".join(f"'{each}'" for each in names[:MODELS_NAMED_MAX]) + ("…" if names[MODELS_NAMED_MAX:] else "")


def no_such_model(who: str, model: str, known: Iterable[str]) -> str:
    """Return the sentence for a model that nobody serves: it names those that are known, and a way out.

    Args:
        who: who was asked for it, as `Generative replica`.
        model: the model.
        known: those that they serve.
    """
    names = models_named(known)
    way_out = f"they serve {names}; ask for one of these, or declare" if names else "none is declared; declare"
    return f"no {who} serves model '{model}': {way_out} it under [[replicas]] or [[launcher.models]]"
