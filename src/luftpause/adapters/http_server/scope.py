"""Writes the ASGI scope of a request from what the parser found."""

import urllib.parse
from asyncio import BaseTransport
from typing import Any, Final

import httptools

from luftpause.ports.asgi import Scope
from luftpause.ports.engines import Header

_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}


class Ends:
    """What scopes say about a connection.

    Args:
        transport: the connection.
        app_state: what the application's lifespan left for requests.
    """

    __slots__ = ("_app_state", "_client", "_scheme", "_server")

    def __init__(self, transport: BaseTransport, app_state: dict[str, object]) -> None:
        self._app_state = app_state
        self._server = _address(transport.get_extra_info("sockname"))
        self._client = _address(transport.get_extra_info("peername"))
        self._scheme = "https" if transport.get_extra_info("sslcontext") else "http"

    def scope(self, parts: dict[str, Any], extensions: dict[str, dict[str, object]]) -> Scope:
        """Make of what `request_parts` says of a request its scope."""
        parts["server"] = self._server
        parts["client"] = self._client
        parts["scheme"] = self._scheme
        parts["state"] = self._app_state.copy()
        parts["extensions"] = extensions
        return parts


def request_parts(*, method: bytes, url: bytes, version: str, headers: list[Header]) -> dict[str, Any]:
    """Return what the scope of a request says of its head, with places for what its connection adds.

    Raises:
        httptools.HttpParserInvalidURLError: the URL is none.
        UnicodeDecodeError: its path is not ASCII.
    """
    query = b""
    if not url.startswith(b"/") or url.find(b"?") >= 0 or url.find(b"#") >= 0:
        parsed: Any = httptools.parse_url(url)  # its stub promises a host
        url, query = parsed.path or b"/", parsed.query or b""
        if parsed.host is not None:
            # By RFC 9112 the target's host counts, whatever the header says.
            host = (b"host", _authority(parsed.host, parsed.port))
            headers = [host, *(header for header in headers if header[0] != b"host")]
    path = url.decode("ascii")
    return {
        "type": "http",
        "asgi": _ASGI,
        "root_path": "",
        "server": None,
        "client": None,
        "scheme": "",
        "state": None,
        "extensions": None,
        "http_version": version,
        "method": method.decode("ascii"),
        "path": urllib.parse.unquote(path) if "%" in path else path,
        "raw_path": url,
        "query_string": query,
        "headers": headers,
    }


def _authority(host: bytes, port: int | None) -> bytes:
    """Return the authority of an absolute target as a Host header has it."""
    if b":" in host:
        host = b"[%b]" % host
    return host if port is None else b"%b:%d" % (host, port)


def _address(named: object) -> tuple[str, int] | None:
    """Return host and port of a socket's end, None where it has none."""
    match named:
        case (str(host), int(port), *_):
            return host, port
        case _:
            return None
