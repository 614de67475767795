"""Where spans go. Who has no `Tracer` has None, and looks no further."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeAlias

from luftpause.core.model.traces import TraceContext
from luftpause.telemetry.exposition import Counts

Attribute: TypeAlias = str | bool | int | float | tuple[str, ...]


class SpanKind(Enum):
    """What a span is to the process that it is of, in OpenTelemetry's words."""

    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of work that is over.

    Attributes:
        name: of few different values.
        at: its place in its trace.
        began_ns: wall clock, nanoseconds; `ended_ns` too.
        error: what went wrong, for people; empty where nothing did.
        link: another span, perhaps of another trace, that it came about by.
    """

    name: str
    at: TraceContext
    kind: SpanKind
    began_ns: int
    ended_ns: int
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    error: str = ""
    link: TraceContext | None = None


class Tracer(Protocol):
    """Takes the spans of one service."""

    @property
    def dropped(self) -> int:
        """How many of them nobody was sent: what takes them did not keep up, or was not there."""
        ...

    def ended(self, span: Span) -> None:
        """Take a span that is over. Never waits and never raises; what nobody can keep up with is dropped."""
        ...


class Telemetry(Protocol):
    """What leaves this process beside logs: spans, and now and then what was counted."""

    def tracer(self, service: str) -> Tracer:
        """Return where a service's spans go."""
        ...

    def counts(self, service: str, read: Callable[[], Counts]) -> None:
        """Send from now on what a service counts, until it is closed. `read` is asked on the event loop."""
        ...
