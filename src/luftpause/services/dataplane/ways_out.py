"""Where to ask instead of at a path where nothing is: most often a base URL has too much or too little in it."""

import re
from typing import Final

from luftpause.core.dialects.gemini.paths import is_called, is_counted
from luftpause.services.dataplane.routes import SINGLE_ROUTES, TURN_ROUTES

MODELS: Final = "/v1/models"
GEMINI_MODELS: Final = "/v1beta/models"
ROUTE_SHOWN_MAX: Final = 60

_SERVED: Final = "the LLM door serves POST " + ", ".join(TURN_ROUTES) + " and GET /v1/models; a base URL ends in /v1"
_MCP_ELSEWHERE: Final = "MCP is spoken at the runtime's own address, http://127.0.0.1:7000/mcp unless it was moved"
_TWICE: Final = ("/v1/v1/", "/v1/v1beta/", "/v1beta/v1beta/", "/v1beta/v1/")
_MESSAGES_TWICE: Final = "/v1/v1/messages"
_ONCE_IS_ENOUGH: Final = (
    "this client adds the version to its base URL by itself: leave it out there, as in http://127.0.0.1:8080"
)
_NAMED_TWICE: Final = (
    "its version stands there twice: a base URL ends in /v1, or before it for clients that add it by themselves"
)
_BASES: Final = "a base URL ends in /v1, or with the port for Anthropic's and Google's clients"
_ENDINGS: Final = {
    route.removeprefix("/v1"): route
    for route in sorted((*TURN_ROUTES[:-1], *SINGLE_ROUTES, MODELS, GEMINI_MODELS), key=len, reverse=True)
    if route != "/rerank"  # the other name of one below /v1
}
"""How routes end behind their version, the longest first, each with its route."""


def way_out(path: str) -> str:
    """Return where to ask instead, for people."""
    if path.rstrip("/") == "/mcp":
        return _MCP_ELSEWHERE
    if path.startswith(_TWICE):
        adds_it = "/v1beta/" in path or path.startswith(_MESSAGES_TWICE)
        return _ONCE_IS_ENOUGH if adds_it else _NAMED_TWICE
    route = meant(path)
    return _SERVED if route == path else f"did you mean {route[:ROUTE_SHOWN_MAX]!r}? {_BASES}"


def meant(path: str) -> str:
    """Return the route that a path where nothing is must mean, the path itself where none shows."""
    tidied = re.sub("/{2,}", "/", path).rstrip("/")
    called = f"/v1beta{tidied[tidied.find('/models/') :]}"
    if is_called(called) or is_counted(called):
        return called
    lower = tidied.lower()
    return next((route for ending, route in _ENDINGS.items() if lower.endswith(ending)), path)
