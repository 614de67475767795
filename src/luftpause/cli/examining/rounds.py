"""All looks, side by side. A look that takes too long says so and holds up no other."""

import asyncio
from collections.abc import Awaitable

from luftpause.cli.examining import access, compiled_copy, engines, journal, launcher, ports, services, tools
from luftpause.cli.examining.doors import all_seen, doors_of
from luftpause.cli.examining.findings import Finding, Says
from luftpause.cli.examining.subject import Subject

LOOKS_MAX = 4
"""The most looks that follow on each other in one of them."""


async def rounds(subject: Subject) -> list[Finding]:
    """Return all that was found, in the order in which people look."""
    groups = await asyncio.gather(
        _in_time("ports", _doors(subject), subject),
        _in_time("engines", engines.examined(subject), subject),
        _in_time("tools", tools.examined(subject), subject),
        _in_time("journal", journal.examined(subject), subject),
        _in_time("launcher", launcher.examined(subject), subject),
        _in_time("compiled", compiled_copy.examined(subject), subject),
    )
    return [finding for group in groups for finding in group]


async def _doors(subject: Subject) -> list[Finding]:
    doors = doors_of(subject.config)
    seen = await all_seen(subject, doors)
    return [
        *ports.examined(subject, doors, seen),
        *access.examined(subject, doors, seen),
        *await services.examined(subject, seen),
    ]


async def _in_time(check: str, look: Awaitable[list[Finding]], subject: Subject) -> list[Finding]:
    limit_s = LOOKS_MAX * subject.look_s
    try:
        async with asyncio.timeout(limit_s):
            return await look
    except PermissionError as error:
        who = subject.command("doctor")
        return [Says(check).error(f"{error.filename} may not be looked at by this user", f"sudo -u ITS_USER {who}")]
    except TimeoutError:
        return [Says(check).warning(f"not done within {limit_s:g} s", subject.command("doctor --patience 30"))]
