"""Whether our ports are free, or ours already."""

from collections.abc import Iterable, Iterator

from luftpause.cli.examining.doors import Door, DoorSeen, Whose
from luftpause.cli.examining.findings import Finding, Says
from luftpause.cli.examining.subject import Subject

SAYS = Says("ports")


def examined(subject: Subject, doors: Iterable[Door], seen: Iterable[DoorSeen]) -> list[Finding]:
    """Return who has each of them."""
    return [*_picked(subject, doors), *(_taken(subject, each) for each in seen)]


def _picked(subject: Subject, doors: Iterable[Door]) -> Iterator[Finding]:
    for door in doors:
        if door.port == 0:
            what = f"{door.key} is 0: a free port at each start, which nobody can be told beforehand"
            yield SAYS.note(what, subject.command(f"doctor --set {door.key}=PORT"))


def _taken(subject: Subject, seen: DoorSeen) -> Finding:
    door = seen.door
    place = f"{door.host}:{door.port} ({door.key})"
    by = f" (process {seen.pid}, {seen.command})" if seen.pid is not None else ""
    if seen.whose is Whose.NOBODY:
        return SAYS.ok(f"{place} is free")
    if seen.whose is Whose.OURS:
        return SAYS.ok(f"{place} is luftpause's {door.title}{by}")
    way = f"{subject.command('up')} {door.option} 0  (a free port), or {door.key} in the configuration"
    if seen.whose is Whose.UNREACHABLE:
        return SAYS.error(f"{place}: {seen.cause}", f"correct {door.key.partition('.')[0]}.host or {door.key}")
    if seen.cause:
        return SAYS.error(f"{place} is taken{by}, and nobody says who it is: {seen.cause}", way)
    return SAYS.error(f"{place} is taken by another program{by}", way)
