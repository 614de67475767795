"""Places in traces that nobody had before."""

import secrets

from luftpause.core.model.traces import TraceContext


def fresh_span() -> str:
    """Return the id of a new span."""
    return secrets.token_hex(8)


def begun_under(above: TraceContext | None) -> TraceContext:
    """Return the place of a new span: below another one, or at the top of a new trace."""
    if above is not None:
        return above.below(fresh_span())
    return TraceContext(trace=secrets.token_hex(16), span=fresh_span())
