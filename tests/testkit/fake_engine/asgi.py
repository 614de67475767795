"""Requests to the fake engine's app without a socket."""

from uvicorn._types import HTTPScope


def scope(method: str, path: str) -> HTTPScope:
    """Return the scope of a request."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [],
        "client": None,
        "server": None,
        "state": {},
        "extensions": {},
    }
