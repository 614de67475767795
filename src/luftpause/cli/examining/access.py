"""Who may come in: whether there is a token, whether it can be used, and whether doors are open to others."""

from collections.abc import Iterable
from typing import Final

from luftpause.assembly.declared import is_sendable, principal_keys
from luftpause.assembly.doors import is_loopback
from luftpause.cli.asking import TOKEN_ENV
from luftpause.cli.examining.doors import Door, DoorSeen
from luftpause.cli.examining.findings import Finding, Says
from luftpause.cli.examining.subject import Subject
from luftpause.config.problems import ConfigError

SAYS = Says("access")
_NEW_TOKEN: Final = f"export {TOKEN_ENV}=$(openssl rand -hex 32)"


def examined(subject: Subject, doors: Iterable[Door], seen: Iterable[DoorSeen]) -> list[Finding]:
    """Return what keeps others out."""
    token = subject.env.get(TOKEN_ENV, "").strip()
    public = {door.host: None for door in doors if not is_loopback(door.host)}
    found: list[Finding] = []
    if not is_sendable(token):
        found.append(SAYS.error(f"{TOKEN_ENV} holds a character that no client can send", _NEW_TOKEN))
    elif token:
        found.append(SAYS.ok(f"{TOKEN_ENV} is set: every door asks for a token"))
    elif public:
        what = f"{TOKEN_ENV} is not set, but {', '.join(public)} can be reached from other machines"
        found.append(SAYS.error(what, _NEW_TOKEN))
    else:
        found.append(SAYS.note(f"{TOKEN_ENV} is not set: whoever is on this machine may use the doors", _NEW_TOKEN))
    found += _principals(subject, token)
    found += [_running_open(each) for each in seen if each.asks_for_token is False and _matters(each, token)]
    return found


def _principals(subject: Subject, token: str) -> list[Finding]:
    try:
        keys = principal_keys(subject.config, subject.env, operator_token=token)
    except ConfigError as error:
        names = (principal.token_env for principal in subject.config.principals)
        mends = {f"the variable {name} ": f"export {name}=$(openssl rand -hex 32)" for name in names}
        return [
            SAYS.error(str(problem), next(mend for said, mend in mends.items() if said in str(problem)))
            for problem in error.problems
        ]
    return [SAYS.ok(f"principals with a token of their own: {len(keys)}")] if keys else []


def _matters(seen: DoorSeen, token: str) -> bool:
    return bool(token) or not is_loopback(seen.door.host)


def _running_open(seen: DoorSeen) -> Finding:
    what = f"the running {seen.door.title} at {seen.door.host}:{seen.door.port} asks nobody for a token"
    return SAYS.error(what, f"restart it with {TOKEN_ENV} set")
