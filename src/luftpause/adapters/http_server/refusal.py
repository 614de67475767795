"""What a door answers by itself: in whose words, and the whole answer to what is no HTTP request."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from luftpause.core.dialects.failures import Failure, openai_error
from luftpause.ports.engines import Header

_REASONS = {400: b"Bad Request", 431: b"Request Header Fields Too Large"}


def _no_headers(headers: Iterable[Header]) -> Sequence[Header]:
    return ()


def _openai_body(path: str, failure: Failure) -> bytes:
    return openai_error(failure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """How the refusals of a door look that it makes before its application is asked.

    Attributes:
        headers: from a request's headers, as far as they are known, to those that its refusal carries.
        body: from a request's path, as far as it is known, and the failure to the refusal's body, which is JSON.
    """

    headers: Callable[[Iterable[Header]], Sequence[Header]] = _no_headers
    body: Callable[[str, Failure], bytes] = _openai_body


PLAIN: Final = Refusals()
"""In OpenAI's words, without headers."""


def render_refusal(failure: Failure, url: bytes, headers: Iterable[Header], refusals: Refusals) -> bytes:
    """Return the whole answer that tells a client of a failure, after which nothing is read.

    `url` and `headers` are the request's as far as they are known.
    """
    body = refusals.body(url.partition(b"?")[0].decode("latin-1"), failure)
    lines = [b"HTTP/1.1 %d %b" % (failure.status, _REASONS[failure.status])]
    lines += [b"%b: %b" % header for header in refusals.headers(headers)]
    lines += [b"content-type: application/json", b"content-length: %d" % len(body), b"connection: close", b"", body]
    return b"\r\n".join(lines)
