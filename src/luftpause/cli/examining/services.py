"""How the running services are: their health, whether they are of our version, and what the scheduler sees."""

import asyncio
from collections.abc import Sequence

import msgspec

import luftpause
from luftpause.cli.asking import ANSWER_BYTES_MAX, TOKEN_ENV
from luftpause.cli.examining.doors import DoorSeen, Whose
from luftpause.cli.examining.findings import Finding, Says
from luftpause.cli.examining.subject import BODY_BYTES_MAX, Subject
from luftpause.core.model.replicas import Endpoint
from luftpause.services.scheduler.fetching import OK, Fetched

SAYS = Says("services")
_UNAUTHORIZED = 401


class _Replica(msgspec.Struct, frozen=True):
    name: str
    healthy: bool = False
    state: str = ""
    why: str = ""


class _Status(msgspec.Struct, frozen=True):
    version: str = ""
    replicas: list[_Replica] = []


async def examined(subject: Subject, seen: Sequence[DoorSeen]) -> list[Finding]:
    """Return how those are that run."""
    doors = [each for each in seen if each.door.speaks_http]
    ours = [each for each in doors if each.whose is Whose.OURS]
    if not ours:
        return [SAYS.note("none is running at the configured addresses", subject.command("up"))]
    found = list(await asyncio.gather(*(_health(subject, each) for each in ours)))
    for each in doors:
        if each.whose is Whose.NOBODY:
            what = f"no {each.door.title} at {each.door.url}, though other services run"
            found.append(SAYS.warning(what, subject.command(each.door.service)))
    for each in ours:
        if each.door.service == "scheduler":
            found += await _scheduler(subject, each)
    return found


async def _health(subject: Subject, seen: DoorSeen) -> Finding:
    door = seen.door
    fetched = await subject.fetcher.fetch(Endpoint(url=door.url), "/health", BODY_BYTES_MAX, any_status=True)
    if fetched.status == OK:
        return SAYS.ok(f"the {door.title} at {door.url} is healthy")
    said = fetched.text or fetched.cause
    return SAYS.error(f"the {door.title} at {door.url} is ill: {said[:200]}", f"restart: {subject.command('up')}")


async def _scheduler(subject: Subject, seen: DoorSeen) -> list[Finding]:
    """Return what the scheduler tells of itself. It gets our token only where it asks for one."""
    token = TOKEN_ENV if seen.asks_for_token else ""
    if token and not subject.env.get(TOKEN_ENV, "").strip():
        what = f"the scheduler at {seen.door.url} asks for a token, so what it sees is not known"
        return [SAYS.note(what, f"export {TOKEN_ENV}=...")]
    endpoint = Endpoint(url=seen.door.url, api_key_env=token)
    fetched = await subject.fetcher.fetch(endpoint, "/status", ANSWER_BYTES_MAX, any_status=True)
    if fetched.status == _UNAUTHORIZED:
        what = f"the scheduler at {seen.door.url} does not accept the token in {TOKEN_ENV}"
        return [SAYS.error(what, f"export {TOKEN_ENV}=...  (the one it was started with)")]
    status = _decoded(fetched)
    if status is None:
        return [SAYS.warning(f"the scheduler's status cannot be read: {fetched.cause}", subject.command("status"))]
    return [_version(subject, status.version), *(_ill(each) for each in status.replicas if not each.healthy)]


def _decoded(fetched: Fetched) -> _Status | None:
    if fetched.status != OK or fetched.text is None:
        return None
    try:
        return msgspec.json.decode(fetched.text, type=_Status)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _version(subject: Subject, version: str) -> Finding:
    if version == luftpause.__version__:
        return SAYS.ok(f"the scheduler is of this version, {version}")
    what = f"the scheduler is of version {version or '?'}, this is {luftpause.__version__}"
    return SAYS.warning(what, f"restart: {subject.command('up')}")


def _ill(replica: _Replica) -> Finding:
    what = f"the scheduler holds replica {replica.name} for unhealthy ({replica.state}): {replica.why or 'no cause'}"
    return SAYS.warning(what, "luftpause status --watch")
