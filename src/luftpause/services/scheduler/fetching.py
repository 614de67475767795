"""One look at what an endpoint says on a path: bounded in time and length, and never an exception."""

import asyncio
from dataclasses import dataclass

from luftpause.core.model.replicas import Endpoint
from luftpause.ports.engines import EngineBrokeError, EngineRequest, Engines, EngineUnreachableError

OK = 200


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came of a look.

    Attributes:
        text: the body of a 200 answer, or of any if that was asked for; else None.
        cause: why there is no 200 answer, in words; empty with one.
        late: an answer may be there, and did not arrive in time.
        status: of the answer, 0 where none arrived.
    """

    text: str | None
    cause: str = ""
    late: bool = False
    status: int = 0


class Fetcher:
    """Looks at endpoints. A look takes `timeout_s` at most."""

    def __init__(self, engines: Engines, timeout_s: float) -> None:
        self._engines = engines
        self._timeout_s = timeout_s

    async def fetch(self, endpoint: Endpoint, path: str, bytes_max: int, *, any_status: bool = False) -> Fetched:
        """Return the body of a 200 answer, cut at the limit; the cause for any other answer or none in time.

        `any_status`: bring the body of other answers too.
        """
        request = EngineRequest(method=b"GET", path=path.encode(), headers=(), body=b"")
        try:
            async with asyncio.timeout(self._timeout_s):
                exchange = await self._engines.send(endpoint, request)
                status = exchange.status
                cause = "" if status == OK else _status_cause(endpoint, path, status)
                try:
                    if cause and not any_status:
                        return Fetched(None, cause, status=status)
                    body = bytearray()
                    while len(body) < bytes_max and (piece := await exchange.read()):
                        body += piece
                finally:
                    exchange.close()
        except TimeoutError:
            return Fetched(None, f"no answer from {path} within {self._timeout_s:g} s", late=True)
        except (EngineUnreachableError, EngineBrokeError) as error:
            return Fetched(None, str(error))
        return Fetched(body[:bytes_max].decode("utf-8", errors="replace"), cause, status=status)


def _status_cause(endpoint: Endpoint, path: str, status: int) -> str:
    cause = f"HTTP {status} from {path}"
    if status in (401, 403):
        key = f"the key in {endpoint.api_key_env}" if endpoint.api_key_env else "a request without a key"
        cause += f": it does not accept {key}"
    elif status == 404:
        cause += ': set its health to a path that it has, such as "/v1/models"'
    return cause
