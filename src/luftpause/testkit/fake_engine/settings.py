"""What can be set on a fake engine. Every default is quick enough to feel instant and slow enough to see."""

from dataclasses import dataclass, field, replace
from enum import Enum

from luftpause.testkit.fake_engine.model import Figures

BODY_BYTES_MAX = 32 * 1024 * 1024


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
        load_s: seconds after its start during which every path answers 503.
        seed: the same seed gives the same replies to the same requests; replicas want different ones, because ids
            come from it too.
        metrics_style: whose names `/metrics` uses.
        tool_rounds: rounds of tool calls per user message, where the message does not say.
        reply_tokens: length of a text reply, where the message does not say.
        labels: what `/classify` chooses from.
    """

    models: tuple[str, ...] = ("fake-1b",)
    figures: Figures = field(default_factory=Figures)
    load_s: float = 0.0
    seed: int = 0
    metrics_style: MetricsStyle = MetricsStyle.VLLM
    tool_rounds: int = 1
    reply_tokens: int = 40
    labels: tuple[str, ...] = ("urgent", "lookup", "other")

    def sped_up(self, factor: float) -> "Settings":
        """Return the same engine, `factor` times as fast in everything."""
        return replace(self, figures=self.figures.sped_up(factor), load_s=self.load_s / factor)
