"""Refusals of the runtime's HTTP routes, in the shape of JSON-RPC errors."""

import msgspec
from mcp_types import INVALID_REQUEST
from starlette.responses import Response


def refusal(status: int, message: str) -> Response:
    """Return the answer that refuses."""
    return Response(error_body(message), status_code=status, media_type="application/json")


def error_body(message: str) -> bytes:
    """Return its body."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": message}})
