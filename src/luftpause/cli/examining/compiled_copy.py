"""Whether the hot path is compiled, and where a compiled copy lies beside the sources, whether it is of these."""

import asyncio
from pathlib import Path

import luftpause
from luftpause.cli.compiled import is_compiled
from luftpause.cli.examining.findings import Finding, Says
from luftpause.cli.examining.subject import Subject

SAYS = Says("compiled")
_COMPILE = "scripts/compile"


async def examined(subject: Subject, package: Path = Path(luftpause.__file__).parent) -> list[Finding]:
    """Return what runs. `package`: where luftpause was imported from."""
    root = next((each for each in package.parents[1:4] if (each / _COMPILE).is_file()), None)
    if root is None:
        return [SAYS.ok("the hot path is compiled") if is_compiled() else SAYS.note("the hot path is not compiled")]
    way = f"sh {root / _COMPILE}"
    if not (root / "build/compiled/stamp").is_file():
        return [SAYS.note("there is no compiled copy: the sources run, slower", way)]
    current = await _is_current(root, subject.look_s)
    if current is None:
        return [SAYS.note(f"whether the compiled copy is current was not told within {subject.look_s:g} s", way)]
    if current:
        return [SAYS.ok("the compiled copy is of these very sources")]
    return [SAYS.warning("the compiled copy is of other sources, so scripts/up runs without it", way)]


async def _is_current(root: Path, limit_s: float) -> bool | None:
    """Return what the script says, None where it does not in time."""
    asking = await asyncio.create_subprocess_exec(
        "sh",
        str(root / _COMPILE),
        "--current",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(limit_s):
            return await asking.wait() == 0
    except TimeoutError:
        asking.kill()
        await asking.wait()
        return None
