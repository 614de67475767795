"""`POST /approvals`: a person decides on a tool call that waits, at a page and not from inside a harness.

Whoever operates this decides for everybody's runs, all others for their own. The MCP tool `approve` stays each one's
own: an agent that was given the operator's token does not thereby answer for other people.
"""

import logging
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from luftpause.core.model.ids import ToolCallId
from luftpause.ports.asgi import principal_of
from luftpause.ports.json_bodies import NotJsonError, read_json
from luftpause.services.runtime.approvals import Approvals
from luftpause.services.runtime.orders import NotKeptError, UnknownHandleError
from luftpause.services.runtime.rpc_errors import refusal

BY_PAGE: Final = "the status page"

_log = logging.getLogger("luftpause.runtime")


class _Decision(msgspec.Struct, frozen=True):
    handle: str
    call: str
    allow: bool


class ApprovalsHttp:
    """The route's answer. `{"handle", "call", "allow"}` becomes `{"decided"}`: false where nothing waits any more."""

    def __init__(self, approvals: Approvals) -> None:
        self._approvals = approvals

    async def decide(self, request: Request) -> Response:
        """Answer one request."""
        try:
            asked = await read_json(request, _Decision, "decision")
        except NotJsonError as error:
            return refusal(error.status, str(error))
        who = principal_of(request.scope)
        try:
            decided = await self._approvals.approve(
                None if who.decides_all else who.name,
                asked.handle,
                ToolCallId(asked.call),
                allow=asked.allow,
                by=BY_PAGE,
            )
        except UnknownHandleError as error:
            return refusal(404, str(error))
        except NotKeptError as error:
            return refusal(503, str(error))
        if decided:
            _log.info("approval_decided", extra={"run": asked.handle, "allow": asked.allow, "principal": who.name})
        return JSONResponse({"decided": decided})
