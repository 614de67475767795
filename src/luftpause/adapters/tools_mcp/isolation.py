"""Over HTTP every call is an exchange of its own, but the SDK ends the whole connection when one of them breaks.

So an exchange that breaks is turned into an answer that says so, for its own call only. The connection ends when the
server cannot be reached at all, or has forgotten our session; that is seen in the exchange itself, never in the text
of an answer. By the protocol a 404 says that the session is forgotten, but some servers say it of one call alone: so
the session is asked once more, with a ping, before everybody's connection is given up for it.
"""

import asyncio
import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

import msgspec
from httpx2 import (
    USE_CLIENT_DEFAULT,
    AsyncByteStream,
    AsyncClient,
    ConnectError,
    ConnectTimeout,
    Limits,
    Request,
    Response,
    Timeout,
    TransportError,
)
from httpx2._client import UseClientDefault
from httpx2._types import AuthTypes
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR

from luftpause.adapters.tools_mcp.child import ANSWER_BYTES_MAX
from luftpause.adapters.tools_mcp.half_pairs import MendedStream, without_halves
from luftpause.core.model.traces import context_in
from luftpause.ports.tools import KEY_FIELD, TRACE_FIELD

_KEY_HEADER: Final = "idempotency-key"
"""To a URL a call's key goes as a header too, and so does its trace."""

_PLAIN_KEY: Final = re.compile(r"[!-~]{1,255}")
_SESSION_HEADER: Final = "mcp-session-id"
_REFUSED: Final = 400
_NOT_FOUND: Final = 404
_CALL: Final = "tools/call"
_GATEWAYS: Final = (502, 504)
"""What a proxy says for a server that got the request and gave no answer."""

_PING: Final = b'{"jsonrpc":"2.0","id":"is-this-session-known","method":"ping"}'
_REFUSAL_CHARS: Final = 200
_OF_ONE_CALL: Final = ("content-length", _KEY_HEADER, TRACE_FIELD)
_KEPT_HEADERS: Final = ("content-type", _SESSION_HEADER, "location", "www-authenticate")
_COURTESY_S: Final = 5.0
"""So long may take what is no call of anybody's."""
_MARK: Final = secrets.token_urlsafe(16)
"""Tells our own answers from a server's: no server can know it."""


class _Meta(msgspec.Struct, rename={"key": KEY_FIELD, "trace": TRACE_FIELD}):
    key: str = ""
    trace: str = ""


class _Params(msgspec.Struct, rename={"meta": "_meta"}):
    meta: _Meta | None = None


class _Call(msgspec.Struct):
    method: str = ""
    params: _Params | None = None


class _Refusal(msgspec.Struct):
    error: dict[str, object]


class Break(Enum):
    """How an exchange broke."""

    NOT_SENT = "the server never saw it"
    UNKNOWN = "the server may have seen it"


class End(Enum):
    """How a connection ended."""

    LOST = "the connection was lost"
    FORGOTTEN = "the server forgot the session"


class IsolatingClient(AsyncClient):
    """An HTTP client that never raises for what happens to a single POST.

    Args:
        on_end: called when the server cannot be reached, or has forgotten our session.
        headers: sent with every request.
        connect_timeout_s: to connect or to send.
        answer_timeout_s: between two pieces of an answer; longer than any caller waits.
        answer_bytes_max: of an answer that is no stream; a longer one is an error.
    """

    def __init__(
        self,
        on_end: Callable[[End], None],
        headers: Mapping[str, str],
        *,
        connect_timeout_s: float,
        answer_timeout_s: float,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
    ) -> None:
        timeout = Timeout(connect_timeout_s, read=answer_timeout_s, pool=None)
        super().__init__(headers=dict(headers), timeout=timeout, limits=Limits(max_connections=None))
        self._on_end = on_end
        self._answer_bytes_max = answer_bytes_max

    async def send(
        self,
        request: Request,
        *,
        stream: bool = False,
        auth: AuthTypes | UseClientDefault | None = USE_CLIENT_DEFAULT,
        follow_redirects: bool | UseClientDefault = USE_CLIENT_DEFAULT,
    ) -> Response:
        """Send a request; what breaks a POST comes back as an answer that `break_of` knows."""
        # A farewell is a courtesy: nobody waits long for it.
        patience_s = _COURTESY_S if request.method == "DELETE" else None
        call = _call_in(request.content) if request.method == "POST" else None
        if call is not None:
            request.headers.update(_headers_of(call))
        try:
            async with asyncio.timeout(patience_s):
                response = await super().send(request, stream=stream, auth=auth, follow_redirects=follow_redirects)
        except (ConnectError, ConnectTimeout) as error:
            self._on_end(End.LOST)
            return _broken(request, Break.NOT_SENT, error)
        except TransportError as error:
            if request.method != "POST":
                raise
            return _broken(request, Break.UNKNOWN, error)
        in_session = _SESSION_HEADER in request.headers and request.method == "POST"
        if in_session and response.status_code == _NOT_FOUND and not await self._is_known(request):
            await response.aclose()
            self._on_end(End.FORGOTTEN)
            return _broken(request, Break.NOT_SENT, None)
        plain = response.stream if "content-encoding" not in response.headers else None
        if _is_stream(response) and isinstance(plain, AsyncByteStream):
            response.stream = MendedStream(plain)
        if request.method != "POST" or _is_stream(response) or not stream:
            return response
        try:
            whole = await self._whole(request, response)
            return _told(request, whole) if call is not None and call.method == _CALL else whole
        except TransportError as error:
            return _broken(request, Break.UNKNOWN, error)
        finally:
            await response.aclose()

    async def _is_known(self, request: Request) -> bool:
        """Ask whether the server knows the session of a request; if in doubt it does not."""
        headers = {name: value for name, value in request.headers.items() if name not in _OF_ONE_CALL}
        try:
            async with asyncio.timeout(_COURTESY_S):
                answer = await super().send(
                    self.build_request("POST", request.url, headers=headers, content=_PING), stream=True
                )
                await answer.aclose()
        except (TransportError, TimeoutError):
            return False
        return answer.status_code < _REFUSED

    async def _whole(self, request: Request, response: Response) -> Response:
        """Return an answer with its whole body, so that it cannot break in the hands of the SDK."""
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > self._answer_bytes_max:
                return _too_long(request, self._answer_bytes_max)
        headers = {name: value for name, value in response.headers.items() if name in _KEPT_HEADERS}
        return Response(response.status_code, headers=headers, content=without_halves(bytes(body)), request=request)


def break_of(data: object) -> Break | None:
    """Return how the exchange broke that gave an error with this data, None for an error of the server's own."""
    match data:
        case {"mark": str() as mark, "break": str() as name} if secrets.compare_digest(mark, _MARK):
            return Break(name)
        case _:
            return None


def _is_stream(response: Response) -> bool:
    kind: str = response.headers.get("content-type", "")
    return kind.lower().startswith("text/event-stream")


def _call_in(body: bytes) -> _Call | None:
    try:
        return msgspec.json.decode(body, type=_Call)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _headers_of(call: _Call) -> dict[str, str]:
    """Return what headers say of a call as well as its `_meta`: its key, as one can carry it, and its trace."""
    meta = call.params.meta if call.params is not None else None
    headers: dict[str, str] = {}
    if meta is not None and meta.key:
        plain = _PLAIN_KEY.fullmatch(meta.key)
        headers[_KEY_HEADER] = meta.key if plain else hashlib.sha256(meta.key.encode()).hexdigest()
    if meta is not None and context_in(meta.trace) is not None:
        headers[TRACE_FIELD] = meta.trace
    return headers


def _told(request: Request, response: Response) -> Response:
    """Return the answer to a call so that a status that refuses is told: the SDK knows no more than that there is one.

    What a gateway answers for a server that gave no answer says nothing of what that did.
    """
    if response.status_code < _REFUSED or _is_refusal(response.content):
        return response
    said = f"HTTP {response.status_code} {response.text[:_REFUSAL_CHARS]}".strip()
    if response.status_code in _GATEWAYS:
        return _broken(request, Break.UNKNOWN, TransportError(said))
    error = {"code": INTERNAL_ERROR, "message": said}
    return Response(response.status_code, json={"jsonrpc": "2.0", "id": None, "error": error}, request=request)


def _is_refusal(body: bytes) -> bool:
    try:
        msgspec.json.decode(body, type=_Refusal)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _too_long(request: Request, most: int) -> Response:
    error = {"code": INTERNAL_ERROR, "message": f"the answer is longer than {most} bytes"}
    return Response(502, json={"jsonrpc": "2.0", "id": None, "error": error}, request=request)


def _broken(request: Request, how: Break, cause: Exception | None) -> Response:
    told = End.FORGOTTEN.value if cause is None else str(cause) or type(cause).__name__
    error = {"code": CONNECTION_CLOSED, "message": told, "data": {"mark": _MARK, "break": how.value}}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})
    return Response(502, headers={"content-type": "application/json"}, content=body, request=request)
