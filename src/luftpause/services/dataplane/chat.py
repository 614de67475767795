"""`POST /v1/chat/completions`: takes the request in, reads what routing needs, and starts the turn's course.

The body goes to the engine byte for byte; nothing is parsed beyond the peek.
"""

from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.dialects.openai_chat import BadRequestError, Peek, peek
from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.model.turns import IdentityKeys, TurnOffer
from luftpause.ports.asgi import ClientLeftError
from luftpause.ports.engines import EngineRequest
from luftpause.services.dataplane.answers import send_failure
from luftpause.services.dataplane.headers import BadHeaderError, Standing, for_engine, run_to_echo, standing_of
from luftpause.services.dataplane.intake import IntakeError, check_media_type, read_body
from luftpause.services.dataplane.metrics import GONE
from luftpause.services.dataplane.settings import DataplaneSettings
from luftpause.services.dataplane.turn_course import ClientCall, Surroundings, TurnCourse

PATH = b"/v1/chat/completions"


async def serve_chat(
    around: Surroundings, settings: DataplaneSettings, call: ClientCall, headers: dict[bytes, bytes]
) -> None:
    """Serve one request."""
    try:
        course = await _take_in(around, settings, call, headers)
    except ClientLeftError:
        around.metrics.of(None).answered(GONE)
        return
    except IntakeError as error:
        failure = error.failure
    except (BadHeaderError, BadRequestError) as error:
        failure = Failure(code=FailureCode.BAD_REQUEST, message=str(error))
    else:
        await course.take()
        return
    around.metrics.of(None).answered(str(failure.status))
    await send_failure(call.send, run_to_echo(headers), failure)


async def _take_in(
    around: Surroundings, settings: DataplaneSettings, call: ClientCall, headers: dict[bytes, bytes]
) -> TurnCourse:
    """Return the course of the turn that a request asks for; the course alone holds the body then."""
    standing = standing_of(headers, caller_bytes=settings.caller_bytes)
    check_media_type(headers)
    body = await read_body(headers, call.line, settings)
    found = peek(body, with_tool_calls=standing.run is None)
    return TurnCourse(
        around,
        call,
        run=standing.run,
        offer=_offer(around, standing, found, len(body)),
        request=EngineRequest(method=b"POST", path=PATH, headers=for_engine(call.headers, headers), body=body),
    )


def _offer(around: Surroundings, standing: Standing, found: Peek, prompt_bytes: int) -> TurnOffer:
    return TurnOffer(
        turn=around.turns.open(),
        peer=around.turns.peer,
        model=found.model,
        kind=ReplicaKind.GENERATIVE,
        service_class=standing.service_class,
        caller=standing.caller,
        principal=ANONYMOUS_PRINCIPAL,
        keys=IdentityKeys(run=standing.run, tool_calls=found.tool_calls, parent=standing.parent),
        prompt_bytes=prompt_bytes,
    )
