"""One run's lines out of archive and main file, as its history."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from luftpause.adapters.journal_file.compaction import MAIN, segment_name
from luftpause.adapters.journal_file.disk import Folder
from luftpause.adapters.journal_file.lines import Piece
from luftpause.adapters.journal_file.reading import Span, history_of
from luftpause.core.model.ids import RunId
from luftpause.core.runs.replay import History


@dataclass(frozen=True, slots=True)
class Source:
    """An open file and what of it is wanted, in order."""

    file: BinaryIO
    spans: tuple[Span, ...]


def open_sources(folder: Folder, pieces: Sequence[Piece], spans: Sequence[Span]) -> list[Source]:
    """Open the files that hold a run's lines; `read_back` closes them.

    Raises:
        FileNotFoundError: a segment is missing.
        OSError: a file cannot be opened.
    """
    sources: list[Source] = []
    with contextlib.ExitStack() as undo:
        for piece in pieces:
            file = undo.enter_context(folder.read(segment_name(piece.segment)))
            sources.append(Source(file, (Span(piece.offset, piece.length),)))
        if spans:
            sources.append(Source(undo.enter_context(folder.read(MAIN)), tuple(spans)))
        undo.pop_all()
    return sources


def read_back(run: RunId, sources: Sequence[Source]) -> History:
    """Return the run's history.

    Raises:
        OSError: a file cannot be read.
    """
    lines: list[bytes] = []
    with contextlib.ExitStack() as opened:
        for source in sources:
            file = opened.enter_context(source.file)
            for span in source.spans:
                file.seek(span.offset)
                lines.extend(file.read(span.length).splitlines(keepends=True))
    return history_of(run, lines)
