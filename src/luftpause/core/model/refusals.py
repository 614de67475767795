"""Why a turn is turned away before any engine sees it."""

from dataclasses import dataclass
from enum import Enum


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refusal and its sentence; the dialect renders both into its own error shape."""

    reason: RefusalReason
    message: str
