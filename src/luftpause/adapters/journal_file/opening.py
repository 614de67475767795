"""Opening a folder: take the lock, cut off a torn end, read everything, and remove what a crash left lying about."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from luftpause.adapters.journal_file.book import Known
from luftpause.adapters.journal_file.compaction import MAIN, NEW, segment_number
from luftpause.adapters.journal_file.disk import AppendFile, Folder, Held
from luftpause.adapters.journal_file.lines import Piece
from luftpause.adapters.journal_file.reading import RunLines, Scan, Span, scan
from luftpause.adapters.journal_file.reading_back import open_sources, read_back
from luftpause.core.model.ids import RunId
from luftpause.core.runs.condensing import RunCondensed
from luftpause.core.runs.replay import History

TORN: Final = MAIN + ".torn"
logger = logging.getLogger("luftpause.journal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An open folder and what is in it.

    Attributes:
        file: the main file, at its end; `size` bytes.
        segment_last: the highest number of a segment, 0 for none.
        known: in the order of their last records.
        toolsets: where each list of tools stands in the main file.
    """

    lock: Held
    file: AppendFile
    size: int
    epoch: int
    segment_last: int
    histories: tuple[History, ...]
    known: dict[RunId, Known]
    toolsets: dict[str, Span]


def open_folder(folder: Folder) -> Found:
    """Lock, mend and read a folder.

    Raises:
        BlockingIOError: another process has it.
        OSError: it is not usable.
        NewerVersionError: a newer luftpause wrote some of it.
    """
    lock = folder.lock()
    try:
        seen = _read_and_mend(folder)
        known = {run: _known(lines) for run, lines in sorted(seen.runs.items(), key=lambda each: each[1].utc_s)}
        histories = tuple(_history(folder, run, lines) for run, lines in seen.runs.items())
        if seen.runs and not seen.broken_lines:  # else a segment may be all that is left of something
            _remove_leftovers(folder, {piece.segment for each in known.values() for piece in each.pieces})
        segments = [number for name in folder.names() if (number := segment_number(name)) is not None]
        file = folder.open(MAIN)
    except BaseException:
        lock.close()
        raise
    return Found(
        lock=lock,
        file=file,
        size=seen.sound_bytes,
        epoch=seen.epoch,
        segment_last=max(segments, default=0),
        histories=histories,
        known=known,
        toolsets=seen.toolsets,
    )


def _read_and_mend(folder: Folder) -> Scan:
    if MAIN not in folder.names():
        return scan(())
    with folder.read(MAIN) as file:
        found = scan(file)
        file.seek(found.sound_bytes)
        torn = file.read()
    if torn:
        _set_aside(folder, found.sound_bytes, torn)
    for number in found.broken_lines:
        logger.error("journal_line_broken", extra={"file": f"{folder}/{MAIN}", "line": number})
    return found


def _set_aside(folder: Folder, sound_bytes: int, torn: bytes) -> None:
    copy = folder.open(TORN)
    try:
        copy.append(torn if torn.endswith(b"\n") else torn + b"\n")
        copy.sync()
    finally:
        copy.close()
    whole = folder.open(MAIN)
    try:
        whole.cut(sound_bytes)
    finally:
        whole.close()
    logger.warning("journal_end_torn", extra={"file": f"{folder}/{MAIN}", "bytes": len(torn)})


def _known(lines: RunLines) -> Known:
    return Known(
        tree=lines.tree,
        seq=lines.last_seq,
        pieces=() if lines.kept is None else lines.kept.archive,
        spans=lines.spans,
        over=lines.kept is not None and not lines.spans,
        at=lines.at,
        utc_s=lines.utc_s,
        toolset=lines.toolset,
    )


def _history(folder: Folder, run: RunId, lines: RunLines) -> History:
    """Return a run's history: condensed if that is all there is, whole if something came after that."""
    kept = None if lines.kept is None else lines.kept.event
    assert kept is None or isinstance(kept, RunCondensed), "nothing else is kept"
    if kept is None:
        return History(run=run, entries=tuple(lines.entries), damage=lines.damage)
    if not lines.spans:
        return History(run=run, condensed=kept)
    assert lines.kept is not None, "looked at above"
    before = _archived(folder, run, lines.kept.archive)
    damage = before.damage or lines.damage
    if before.damage:
        return History(run=run, condensed=kept, damage=damage)
    return History(run=run, entries=(*before.entries, *lines.entries), damage=damage)


def _archived(folder: Folder, run: RunId, pieces: Sequence[Piece]) -> History:
    try:
        return read_back(run, open_sources(folder, pieces, ()))
    except FileNotFoundError as error:
        return History(run=run, damage=f"its archive is not there: {error}")


def _remove_leftovers(folder: Folder, needed: set[int]) -> None:
    """Remove what no record refers to: a compaction that did not end, and segments that nobody needs any more."""
    for name in folder.names():
        number = segment_number(name)
        if name == NEW or (number is not None and number not in needed):
            folder.remove(name)
