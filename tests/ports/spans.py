"""A tracer that keeps what it is told."""

from luftpause.ports.tracing import Span


class KeptSpans:
    """A `Tracer`."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.dropped = 0

    def ended(self, span: Span) -> None:
        self.spans.append(span)

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]
