"""What a door answers by itself to what is no HTTP request: one whole JSON answer, after which nothing is read."""

from collections.abc import Iterable

from luftpause.core.dialects.failures import Failure, openai_error
from luftpause.ports.engines import Header

_REASONS = {400: b"Bad Request", 431: b"Request Header Fields Too Large"}


def render_refusal(failure: Failure, headers: Iterable[Header]) -> bytes:
    """Return the whole answer that tells a client of a failure, with further headers."""
    body = openai_error(failure)
    lines = [b"HTTP/1.1 %d %b" % (failure.status, _REASONS[failure.status])]
    lines += [b"%b: %b" % header for header in headers]
    lines += [b"content-type: application/json", b"content-length: %d" % len(body), b"connection: close", b"", body]
    return b"\r\n".join(lines)
