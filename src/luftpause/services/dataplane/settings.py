"""What can be set about a dataplane."""

from collections.abc import Set
from dataclasses import dataclass

from luftpause.core.dialects.edits import ALL_EDITS, Edit
from luftpause.core.model.ids import CALLER_BYTES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class DataplaneSettings:
    """Limits and periods.

    Attributes:
        max_body_bytes: longest request body.
        body_timeout_s: how long a client may take to send its body, seconds.
        caller_bytes: longest name of a caller, cut there.
        renew_period_s: how often open turns are renewed, seconds; far below the scheduler's turn timeout.
        keepalive_after_s: a streaming client without an answer gets its 200 and a first sign of life then, seconds.
        looks_inside: whether pictures and code in a request decide where it goes when nobody knows its model.
        measures_pictures: whether it matters how many tokens a request's pictures come to: they are looked for in the
            whole of it, 40 us for 100 KB.
        keepalive_s: from one sign of life to the next until the engine's first byte, seconds; 0 sends none.
        edits: the changes that may be made to a request.
        link_timeout_s: how long a question that is not a turn (models, end of a run) waits for the scheduler, seconds.
    """

    max_body_bytes: int = 32 * 1024 * 1024
    body_timeout_s: float = 60.0
    caller_bytes: int = CALLER_BYTES_MAX
    renew_period_s: float = 60.0
    link_timeout_s: float = 5.0
    keepalive_after_s: float = 20.0
    keepalive_s: float = 10.0
    looks_inside: bool = False
    measures_pictures: bool = False
    edits: Set[Edit] = ALL_EDITS
