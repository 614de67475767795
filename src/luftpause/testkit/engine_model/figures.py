"""How fast and how large an engine is: the `[engine]` table of a scenario. Decides nothing."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

STEP_S_MIN = 1e-6
"""Every step takes some time, seconds: an engine that takes none would never let go of its processor."""

Tokens = Annotated[int, Meta(ge=1, le=1 << 30)]


class EngineFigures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How fast and how large each engine is. The defaults are a small model on a small card.

    Attributes:
        max_running: requests that run at the same time.
        kv_tokens: tokens of KV memory, for running requests and kept prefixes together.
        page_tokens: prefixes are kept, found and evicted by whole pages of so many tokens.
        chunk_tokens: tokens of one step, decoded and prefilled together.
        step_s: what every step costs.
        decode_s: what each decoding request adds to a step.
        prefill_tps: prompt tokens per second.
        context_s: what each token of context of a decoding request adds to a step.
        prefill_context_s: what each prompt token adds for each token that stands before it.
        request_s: what a request adds to the step that begins its prompt, whatever its length.
        reserve: share of the longest reply that must fit when a request is admitted.
        queue: whether the engine looks at priorities: who waits, and who is taken back for want of memory.
    """

    max_running: Annotated[int, Meta(ge=1, le=100_000)] = 256
    kv_tokens: Tokens = 40_000
    page_tokens: Annotated[int, Meta(ge=1, le=4096)] = 16
    chunk_tokens: Tokens = 2048
    step_s: Annotated[float, Meta(gt=0, le=60)] = 0.006
    decode_s: Annotated[float, Meta(ge=0, le=60)] = 0.00035
    prefill_tps: Annotated[float, Meta(gt=0)] = 8000.0
    context_s: Annotated[float, Meta(ge=0, le=1)] = 0.0
    prefill_context_s: Annotated[float, Meta(ge=0, le=1)] = 0.0
    request_s: Annotated[float, Meta(ge=0, le=60)] = 0.0
    reserve: Annotated[float, Meta(ge=0, le=1)] = 0.7
    queue: Literal["fcfs", "priority"] = "fcfs"

    def sped_up(self, factor: float) -> "EngineFigures":
        """Return the same engine, `factor` times as fast; no step takes less than STEP_S_MIN."""
        return msgspec.structs.replace(
            self,
            step_s=max(STEP_S_MIN, self.step_s / factor),
            decode_s=self.decode_s / factor,
            prefill_tps=self.prefill_tps * factor,
            context_s=self.context_s / factor,
            prefill_context_s=self.prefill_context_s / factor,
            request_s=self.request_s / factor,
        )
