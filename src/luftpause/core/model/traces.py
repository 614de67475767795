"""Where something stands in a trace, and how W3C trace context writes that into a header. Mints nothing."""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

TRACEPARENT_CHARS_MAX: Final = 128
"""Later versions may say more than ours; nothing honest says more than this."""

_HEADER: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED: Final = 0x01


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceContext:
    """A span's place.

    Attributes:
        trace: 32 hex digits, not all zero.
        span: 16 hex digits, not all zero.
        above: the span that it is a child of; empty for none.
        sampled: whether whoever began the trace wants it recorded.
    """

    trace: str
    span: str
    above: str = ""
    sampled: bool = True

    @property
    def header(self) -> str:
        """As a `traceparent` header says it."""
        return f"00-{self.trace}-{self.span}-{'01' if self.sampled else '00'}"

    def below(self, span: str) -> "TraceContext":
        """Return the place of a child of this span."""
        return TraceContext(trace=self.trace, span=span, above=self.span, sampled=self.sampled)


def context_in(header: str) -> TraceContext | None:
    """Return what a `traceparent` header says, None where it says nothing that holds."""
    if not header or len(header) > TRACEPARENT_CHARS_MAX:
        return None
    found = _HEADER.fullmatch(header)
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not trace.strip("0") or not span.strip("0"):
        return None
    return TraceContext(trace=trace, span=span, sampled=bool(int(flags, 16) & _SAMPLED))


def trace_of(name: str) -> str:
    """Return the trace id that belongs to a name: the same in every process and after every restart."""
    return hashlib.sha256(b"trace\0" + name.encode()).hexdigest()[:32]


def span_of(name: str) -> str:
    """Return the span id that belongs to a name, as `trace_of` does."""
    return hashlib.sha256(b"span\0" + name.encode()).hexdigest()[:16]
