"""What can be set on a fake engine. Every default is quick enough to feel instant and slow enough to see."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Literal, TypeAlias

from msgspec import structs

from luftpause.testkit.engine_model.figures import STEP_S_MIN, EngineFigures

SlotAction: TypeAlias = Literal["save", "restore"]

BODY_BYTES_MAX = 32 * 1024 * 1024


def paced(figures: EngineFigures, token_s: float, crowd_s: float) -> EngineFigures:
    """Return the figures with steps that take `token_s` with one decoding request, `crowd_s` more with each other."""
    return structs.replace(figures, step_s=max(STEP_S_MIN, token_s - crowd_s), decode_s=crowd_s)


FIGURES: Final = paced(EngineFigures(max_running=8, kv_tokens=131_072, prefill_tps=20_000.0), 0.01, 0.0005)
"""A small engine on a machine of its own."""


class MetricsStyle(Enum):
    """Whose names `/metrics` uses; NONE has no such page."""

    VLLM = "vllm"
    SGLANG = "sglang"
    LLAMA_CPP = "llama.cpp"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A fake engine.

    Attributes:
        models: names it serves; any other is a 404.
        figures: how fast and how large it is.
        ttft_s: fixed delay of every request before the engine sees it, seconds.
        load_s: seconds after its start during which every path answers 503.
        seed: the same seed gives the same replies to the same requests; replicas want different ones, because ids
            come from it too.
        metrics_style: whose names `/metrics` uses.
        tool_rounds: rounds of tool calls per user message, where the message does not say.
        reply_tokens: length of a text reply, where the message does not say.
        labels: what `/classify` chooses from.
        slot_save_path: folder that `/slots` saves to and restores from; None: it has no slots.
        slot_bytes: length of a saved slot's file for each token.
        slot_s: how long a save or a restore takes, seconds.
        slot_fails: what of these fails, every time.
        stream_interval: a stream has its first token at once and then so many in one go.
    """

    models: tuple[str, ...] = ("fake-1b",)
    figures: EngineFigures = FIGURES
    ttft_s: float = 0.03
    load_s: float = 0.0
    seed: int = 0
    metrics_style: MetricsStyle = MetricsStyle.VLLM
    tool_rounds: int = 1
    reply_tokens: int = 40
    labels: tuple[str, ...] = ("urgent", "lookup", "other")
    slot_save_path: str | None = None
    slot_bytes: int = 1024
    slot_s: float = 0.0
    slot_fails: tuple[SlotAction, ...] = ()
    stream_interval: int = 1

    def sped_up(self, factor: float) -> "Settings":
        """Return the same engine, `factor` times as fast in everything."""
        return replace(
            self,
            figures=self.figures.sped_up(factor),
            ttft_s=self.ttft_s / factor,
            load_s=self.load_s / factor,
            slot_s=self.slot_s / factor,
        )
