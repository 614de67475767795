"""The status page: plain files from the package, sent with headers that let it load nothing from anywhere else.

Knows no state: the page follows `/events` of its own origin. Everything it shows it shows as text. The files tell
nothing of what goes on here, so whoever asks gets them; the figures need the token that the page asks for.
"""

from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

_SCRIPTS: Final = (
    "approvals",
    "elements",
    "lanes",
    "main",
    "phases",
    "store",
    "stream",
    "tables",
    "timeline",
    "trees",
    "welcome",
)

FILES: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page/status.css": ("status.css", "text/css; charset=utf-8"),
    **{f"/page/{name}.js": (f"{name}.js", "text/javascript; charset=utf-8") for name in _SCRIPTS},
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""Path to file and content type."""

HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


def page_routes() -> list[BaseRoute]:
    """Return the page's routes. Reads its files, which are part of the package."""
    return [_file_route(path, name, media_type) for path, (name, media_type) in FILES.items()]


def _file_route(path: str, name: str, media_type: str) -> BaseRoute:
    content = files("luftpause.services.status").joinpath("assets", name).read_bytes()

    async def get_file(_: Request) -> Response:
        return Response(content, headers={**HEADERS, "content-type": media_type})

    return Route(path, get_file, methods=["GET"], name=name)
