"""Where an endpoint's URL leads: taken apart once, remembered."""

import functools
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from luftpause.ports.engines import EngineUnreachableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """One server, and the path that stands before every request's own.

    Attributes:
        host_header: value of the `host` header.
        base_path: without a final slash, often empty.
    """

    host: str
    port: int
    tls: bool
    host_header: bytes
    base_path: bytes

    @property
    def key(self) -> tuple[bool, str, int]:
        """What connections are shared by."""
        return self.tls, self.host, self.port

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@functools.lru_cache(maxsize=1024)
def parse_origin(url: str) -> Origin:
    """Take an endpoint's URL apart.

    Raises:
        EngineUnreachableError: not `http(s)://host[:port][/path]`.
    """
    try:
        parts = urlsplit(url)
        return _origin(parts)
    except ValueError as error:
        raise EngineUnreachableError(f"endpoint url {url!r} is not http(s)://host[:port][/path]: {error}") from error


def _origin(parts: SplitResult) -> Origin:
    if parts.scheme not in ("http", "https"):
        raise ValueError("its scheme is neither http nor https")
    if not parts.hostname:
        raise ValueError("it names no host")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("user, query and fragment have no place in it")
    tls = parts.scheme == "https"
    port = parts.port or (443 if tls else 80)
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Origin(
        host=parts.hostname,
        port=port,
        tls=tls,
        host_header=(f"{name}:{parts.port}" if parts.port else name).encode("idna" if not name.isascii() else "ascii"),
        base_path=parts.path.rstrip("/").encode("ascii"),
    )
