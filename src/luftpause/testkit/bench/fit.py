"""Engine figures from a few answers of a real engine, by least squares over what the model spends time on."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from luftpause.testkit.engine_model.figures import STEP_S_MIN, EngineFigures
from luftpause.testkit.what_if.regression import nonnegative, robust


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """An answer, or a part of one, whose steps are known.

    Attributes:
        seconds: what it took.
        steps: of the engine.
        beside: requests that decoded in each of them, itself included.
        prefilled: tokens of prompts that were computed.
        before: tokens that stood before those, summed over each of them.
        prompts: how many were begun.
        context: tokens of context of all who decoded, a mean over the steps.
    """

    seconds: float
    steps: int
    beside: int = 0
    prefilled: int = 0
    before: float = 0.0
    prompts: int = 0
    context: float = 0.0

    @property
    def row(self) -> tuple[float, ...]:
        """How often each figure of the model is spent."""
        decoded = (self.steps, self.steps * self.beside, self.steps * self.context)
        return (*decoded, self.prefilled, self.before, self.prompts)


def fitted(probes: Sequence[Probe], base: EngineFigures) -> tuple[EngineFigures, float]:
    """Return the engine with the six times that explain the probes best, and the middle error of all that.

    All else is the base's.

    Every probe counts alike: rows are divided by what they took, so errors are relative ones. One that is far off was
    held up by something else, and is left out.
    """
    rows = [[value / probe.seconds for value in probe.row] for probe in probes]
    (step_s, decode_s, context_s, token_s, before_s, request_s), middle = robust(rows, [1.0] * len(rows), nonnegative)
    engine = msgspec.structs.replace(
        base,
        step_s=max(STEP_S_MIN, step_s),
        decode_s=decode_s,
        prefill_tps=1 / token_s if token_s > 0 else base.prefill_tps,
        context_s=context_s,
        prefill_context_s=before_s,
        request_s=request_s,
    )
    return engine, middle


def error_of(modelled: float | None, measured: float | None) -> float | None:
    """Return how far a figure of the model is off, as a share of the measured one; None where either is missing."""
    return None if modelled is None or not measured else abs(modelled / measured - 1)
