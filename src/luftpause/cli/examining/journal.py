"""The runtime's state directory: who has it, whether it can be written, and whether the journal in it can be read."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from luftpause.adapters.journal_file.compaction import MAIN
from luftpause.adapters.journal_file.lines import NewerVersionError
from luftpause.adapters.journal_file.looking import Look, NoFileError, look_at
from luftpause.assembly.declared import state_folder
from luftpause.cli.examining.findings import Finding, Says
from luftpause.cli.examining.subject import Subject

SAYS = Says("journal")
MIB: Final = 1 << 20
FREE_LOW: Final = 1024 * MIB
FREE_NONE: Final = 64 * MIB
"""Bytes. A full disk ends the runtime: nothing is acknowledged that is not kept."""


async def examined(subject: Subject) -> list[Finding]:
    """Return how it is."""
    folder = state_folder(subject.config)
    return await asyncio.to_thread(lambda: [*_folder(folder), *_disk(folder), *_journal(folder)])


def _folder(folder: Path) -> Iterator[Finding]:
    place = _existing(folder)
    if not place.is_dir():
        yield SAYS.error(f"{place} is no folder", f'runtime.state_dir = "state"  (now "{folder}")')
    elif not os.access(place, os.W_OK | os.X_OK):
        yield SAYS.error(f"{place} cannot be written", f"sudo chown -R $(id -u) {place}")
    elif place == folder:
        yield SAYS.ok(f"{folder} can be written")
    else:
        yield SAYS.ok(f"{folder} is not there yet and can be made")


def _disk(folder: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(_existing(folder)).free
    what = f"{free // MIB:,} MiB are free where {folder} is"
    way = f"free some, or runtime.state_dir on another disk; what is there: du -sh {folder}"
    if free < FREE_NONE:
        yield SAYS.error(what, way)
    elif free < FREE_LOW:
        yield SAYS.warning(what, way)
    else:
        yield SAYS.ok(what)


def _journal(folder: Path) -> Iterator[Finding]:
    try:
        look = look_at(folder)
    except NewerVersionError as error:
        yield SAYS.error(f"{folder / MAIN} is too new: {error}", "pip install --upgrade luftpause")
        return
    except NoFileError:
        yield SAYS.error(f"{folder / MAIN} is no file", f"mv {folder / MAIN} {folder / MAIN}.aside")
        return
    except OSError as error:
        if folder.exists():
            yield SAYS.error(f"{folder / MAIN} cannot be read: {error.strerror}", f"sudo chown -R $(id -u) {folder}")
        return
    if look.holder is not None:
        yield SAYS.note(f"process {look.holder} has {folder}: no other runtime can use it meanwhile")
    if look.size is None:
        yield SAYS.ok(f"no {MAIN} yet")
    elif look.found is None:
        yield SAYS.note(f"{MAIN} is {look.size / MIB:.1f} MiB long, too long to be read here")
    else:
        yield from _content(folder, look)


def _content(folder: Path, look: Look) -> Iterator[Finding]:
    found, path = look.found, folder / MAIN
    assert found is not None, "looked at above"
    assert look.size is not None, "what was read has a size"
    yield SAYS.ok(f"{MAIN} is {look.size / MIB:.1f} MiB long and holds {len(found.runs)} runs")
    if look.torn and look.holder is None:
        yield SAYS.note(f"its last {look.torn} bytes were not written whole; the next start cuts them off")
    if found.broken_lines:
        numbers = ", ".join(map(str, found.broken_lines[:5])) + (", …" if len(found.broken_lines) > 5 else "")
        yield SAYS.warning(
            f"{len(found.broken_lines)} of its lines are broken: {numbers}", f"sed -n {found.broken_lines[0]}p {path}"
        )
    for run, lines in found.runs.items():
        if lines.damage and not lines.is_over:
            yield SAYS.warning(f"{run} is quarantined and will not go on: {lines.damage}", "spawn its task again")


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above that is there."""
    return next((each for each in (folder, *folder.absolute().parents) if each.exists()), folder)
