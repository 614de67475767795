"""What can be set about a dataplane."""

from dataclasses import dataclass

from luftpause.core.model.ids import CALLER_BYTES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class DataplaneSettings:
    """Limits and periods.

    Attributes:
        max_body_bytes: longest request body.
        body_timeout_s: how long a client may take to send its body, seconds.
        caller_bytes: longest name of a caller, cut there.
        renew_period_s: how often open turns are renewed, seconds; far below the scheduler's turn timeout.
        link_timeout_s: how long a question that is not a turn (models, end of a run) waits for the scheduler, seconds.
    """

    max_body_bytes: int = 32 * 1024 * 1024
    body_timeout_s: float = 60.0
    caller_bytes: int = CALLER_BYTES_MAX
    renew_period_s: float = 60.0
    link_timeout_s: float = 5.0
