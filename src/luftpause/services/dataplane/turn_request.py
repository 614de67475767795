"""A request for a turn: taken in, read as far as routing needs, and put on its course.

The same for every dialect; nothing is parsed beyond the dialect's peek.
"""

import dataclasses
from collections.abc import Awaitable
from typing import Final

import msgspec

from luftpause.core.dialects.dialect import Dialect, Peek, is_aside
from luftpause.core.dialects.failures import Failure, FailureCode
from luftpause.core.dialects.harness import HarnessSession, codex_session, harness_session
from luftpause.core.dialects.pictures import pictures_in
from luftpause.core.dialects.request import BadRequestError
from luftpause.core.dialects.said import Said, said_in
from luftpause.core.dialects.traits import traits_of
from luftpause.core.model.principals import Principal
from luftpause.core.model.turns import NO_TRAITS, IdentityKeys, TurnOffer, TurnShape
from luftpause.ports.asgi import ClientLeftError
from luftpause.ports.engines import Header
from luftpause.services.dataplane.answers import send_failure
from luftpause.services.dataplane.counts import GONE
from luftpause.services.dataplane.forwarding import Asked
from luftpause.services.dataplane.headers import BadHeaderError, Standing, for_engine, run_to_echo, shared, standing_of
from luftpause.services.dataplane.intake import IntakeError, body_here, check_encoding, check_media_type, read_body
from luftpause.services.dataplane.surroundings import ClientCall, Surroundings
from luftpause.services.dataplane.turn_course import TurnCourse
from luftpause.services.dataplane.turn_spans import trace_in, with_trace


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What a client addressed: the path decoded, and as it came; `query` is without its question mark."""

    dialect: Dialect
    path: str
    raw_path: bytes
    query: bytes = b""


class ReadHead(msgspec.Struct, frozen=True, kw_only=True):
    """What the head of a request says of its turn. `for_engine`: the headers that go on to the engine."""

    principal: Principal
    standing: Standing
    harness: HarnessSession
    for_engine: tuple[Header, ...]


_UNFIT: Final = (ClientLeftError, IntakeError, BadHeaderError, BadRequestError)
_READ: Final = "turn"
"""By what the server keeps it."""


def serve_turn(around: Surroundings, target: Target, call: ClientCall, headers: dict[bytes, bytes]) -> Awaitable[None]:
    """Serve one request, when awaited."""
    try:
        read = _read_head(around, call, headers)
        body = body_here(call.line, around.settings)
        if body is None:
            return _serve_later(around, target, call, headers, read)
        return _course(around, target, call, headers, read, body).take()
    except _UNFIT as error:
        return _refuse(around, target, call, headers, error)


async def _serve_later(
    around: Surroundings, target: Target, call: ClientCall, headers: dict[bytes, bytes], read: ReadHead
) -> None:
    """Serve a request whose body is under way."""
    try:
        body = await read_body(headers, call.line, around.settings)
        course = _course(around, target, call, headers, read, body)
        del body  # the course alone holds it now
    except _UNFIT as error:
        await _refuse(around, target, call, headers, error)
        return
    await course.take()


async def _refuse(
    around: Surroundings, target: Target, call: ClientCall, headers: dict[bytes, bytes], error: Exception
) -> None:
    """Tell a client why its request is not served, unless it left."""
    if isinstance(error, ClientLeftError):
        around.counts.of(None).answered(GONE)
        return
    if isinstance(error, IntakeError):
        failure = error.failure
    else:
        failure = Failure(code=FailureCode.BAD_REQUEST, message=str(error))
    around.counts.of(None).answered(str(failure.status))
    await send_failure(call.send, run_to_echo(headers), failure, dialect=target.dialect)


def _course(
    around: Surroundings, target: Target, call: ClientCall, headers: dict[bytes, bytes], read: ReadHead, body: bytes
) -> TurnCourse:
    """Return the course of the turn that a request asks for."""
    standing, harness = read.standing, read.harness
    found = target.dialect.peek(target.path, body, with_identity=standing.run is None and not harness.session)
    said = None
    if standing.run is None and not harness.session and found.shape.in_run and not around.turns.gave(found.tool_calls):
        said = said_in(target.dialect.conversation(body), f"{standing.caller}\0{found.model}")
    offer = _offer(around, standing, harness, found, said, body)
    if around.settings.measures_pictures and (pictures := pictures_in(body, target.dialect.name)).tokens:
        offer = dataclasses.replace(offer, picture_bytes=pictures.size, picture_tokens=pictures.tokens)
    onward = read.for_engine
    if around.traces:
        trace = trace_in(headers)
        offer = dataclasses.replace(offer, trace=trace)
        onward = with_trace(onward, trace)
    return TurnCourse(
        around,
        call,
        run=standing.run,
        offer=offer,
        asked=Asked(
            dialect=target.dialect,
            target=target.raw_path + (b"?" + target.query if target.query else b""),
            path=target.path,
            stream=found.stream,
            headers=onward,
            body=body,
            said=said,
            model=found.model,
            approve_tools=standing.approve_tools,
        ),
    )


def _read_head(around: Surroundings, call: ClientCall, headers: dict[bytes, bytes]) -> ReadHead:
    """Return what the head of a request says, and keep it: the next one of its run has the same head as a rule.

    Raises:
        IntakeError: it is not what may be asked here.
        BadHeaderError: a header of ours holds what it must not.
    """
    kept = call.kept
    known = None if kept is None else kept.get(_READ)
    if isinstance(known, ReadHead) and known.principal is call.principal:
        return known
    standing = standing_of(headers, call.principal, caller_bytes=around.settings.caller_bytes)
    refusal = call.principal.refusal_of(standing.service_class)
    if refusal:
        raise IntakeError(Failure(code=FailureCode.FORBIDDEN_CLASS, message=refusal))
    check_media_type(headers)
    check_encoding(headers)
    read = ReadHead(
        principal=call.principal,
        standing=standing,
        harness=harness_session(headers),
        for_engine=shared(for_engine(call.headers, headers)),
    )
    if kept is not None:
        kept[_READ] = read
    return read


def _offer(
    around: Surroundings,
    standing: Standing,
    harness: HarnessSession,
    found: Peek,
    said: Said | None,
    body: bytes,
) -> TurnOffer:
    shape = found.shape
    if harness.session and standing.run is None and is_aside(found, body):  # who names the run itself means it
        shape = TurnShape.ASIDE
    return TurnOffer(
        turn=around.turns.open(),
        peer=around.turns.peer,
        model=found.model,
        kind=found.kind,
        service_class=standing.service_class,
        caller=standing.caller,
        principal=standing.principal,
        keys=IdentityKeys(
            run=standing.run,
            session=harness.session,
            tool_calls=found.tool_calls,
            cache_key=found.cache_key,
            said=() if said is None else said.marks,
            parent=standing.parent,
            parent_call=standing.parent_call,
            parent_session=harness.parent or (codex_session(standing.parent_thread) if standing.parent_thread else ""),
        ),
        prompt_bytes=len(body),
        reply_max=found.reply_max,
        shape=shape,
        traits=traits_of(body) if around.settings.looks_inside else NO_TRAITS,
    )
