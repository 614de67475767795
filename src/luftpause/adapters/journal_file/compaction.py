"""The main file without what is over: its lines move to a segment of the archive, one short line stays for each run.

Every step leaves a readable state behind, whatever happens after it:

1. the new main file is written under another name and synced: the next start removes it;
2. the new segment is written and synced: nothing but the new file refers to it, so the next start removes that too;
3. in the writer's thread, what was appended meanwhile is copied behind it and synced;
4. the new file takes the main file's name, and the folder is synced: from here on it is the main file.
"""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO, Final

from luftpause.adapters.journal_file.book import Tidied, Tidying
from luftpause.adapters.journal_file.disk import AppendFile, Folder
from luftpause.adapters.journal_file.lines import Piece, encode, is_condensed
from luftpause.adapters.journal_file.reading import Span, run_named
from luftpause.adapters.journal_file.toolsets import digest_in
from luftpause.core.model.ids import RunId

MAIN: Final = "runs.jsonl"
NEW: Final = MAIN + ".new"
_WORK_S: Final = 0.001
_BREATH_S: Final = 0.002
_BLOCK_BYTES: Final = 1024 * 1024
_BLOCK_LINES: Final = 500


class StoppedError(Exception):
    """The journal is closing: the compaction ended where it was."""


def segment_name(number: int) -> str:
    """Return what a segment's file is called."""
    return f"runs-{number:04d}.jsonl"


def segment_number(name: str) -> int | None:
    """Return which segment a file is, None for another one."""
    number = name.removeprefix("runs-").removesuffix(".jsonl")
    return int(number) if number.isdecimal() and name == segment_name(int(number)) else None


class Compaction:
    """One compaction. `write` in any thread, then `follow` and `name` in the writer's."""

    def __init__(self, folder: Folder, plan: Tidying, stop: threading.Event) -> None:
        self._folder = folder
        self._plan = plan
        self._pace = _Pace(stop)
        self._file: AppendFile | None = None
        self._named = False

    def write(self) -> Tidied:
        """Write segment and new main file, as far as the plan goes, with pauses: other threads want to run too.

        Raises:
            OSError: no room, for example.
            StoppedError: told so.
        """
        self._pace.begin()
        self._folder.remove(NEW)
        file = self._file = self._folder.open(NEW)
        pieces = self._places()
        moved: dict[RunId, list[bytes]] = {}
        lists: dict[str, bytes] = {}
        spans: dict[RunId, list[Span]] = {}
        toolsets: dict[str, Span] = {}
        shortened: set[RunId] = set()
        size = 0
        block: list[bytes] = []
        for line in self._old_lines():
            self._pace.breathe()
            digest = digest_in(line)
            run = run_named(line) if digest is None else None
            if run in self._plan.forgotten:
                continue
            if digest is not None:
                lists[digest] = line
                if digest not in self._plan.staying or digest in toolsets:
                    continue
                toolsets[digest] = Span(size, len(line))
            stays = line
            if run is not None and run in pieces:
                if not is_condensed(line):
                    moved.setdefault(run, []).append(line)
                if run in shortened:
                    continue
                shortened.add(run)
                stays = self._short(run, pieces[run])  # in the place of the first one, for their order tells of births
            elif run is not None and not is_condensed(line):
                spans.setdefault(run, []).append(Span(size, len(line)))
            size += len(stays)
            block.append(stays)
            if len(block) >= _BLOCK_LINES:
                file.append(b"".join(block))
                block.clear()
        file.append(b"".join(block))
        file.sync()
        self._archive(lists, moved, pieces)
        return Tidied(size=size, spans=spans, pieces=pieces, toolsets=toolsets)

    def follow(self, main: AppendFile) -> AppendFile:
        """Copy what was appended to the main file meanwhile, give the new one its name, and return it.

        Raises:
            OSError: the old file is still the main one.
        """
        assert self._file is not None, "written first"
        with self._folder.read(MAIN) as old:
            old.seek(self._plan.size)
            while block := old.read(_BLOCK_BYTES):
                self._file.append(block)
        self._file.sync()
        self._folder.replace(NEW, MAIN)
        self._named = True
        file, self._file = self._file, None
        return file

    def abandon(self) -> None:
        """Remove what was begun, as far as that goes, unless it is the main file already."""
        if self._named:
            return
        if self._file is not None:
            self._file.close()
            self._file = None
        self._folder.remove(NEW)
        self._folder.remove(segment_name(self._plan.segment))

    def _old_lines(self) -> Iterator[bytes]:
        with self._folder.read(MAIN) as old:
            yield from _lines_up_to(old, self._plan.size)

    def _places(self) -> dict[RunId, tuple[Piece, ...]]:
        """Return where in the new segment the lines of each run will stand: the list of its tools, then its own."""
        pieces: dict[RunId, tuple[Piece, ...]] = {}
        lists: dict[str, Piece] = {}
        offset = 0
        for digest in dict.fromkeys(over.toolset for over in self._plan.over.values() if over.toolset):
            lists[digest] = Piece(self._plan.segment, offset, self._plan.toolsets[digest].length)
            offset += lists[digest].length
        for run, over in self._plan.over.items():
            self._pace.breathe()
            own = Piece(self._plan.segment, offset, over.length)
            pieces[run] = (lists[over.toolset], own) if over.toolset else (own,)
            offset += over.length
        return pieces

    def _short(self, run: RunId, pieces: tuple[Piece, ...]) -> bytes:
        over = self._plan.over[run]
        return encode(replace(over.short, archive=(*over.pieces, *pieces)))

    def _archive(
        self, lists: dict[str, bytes], moved: dict[RunId, list[bytes]], pieces: dict[RunId, tuple[Piece, ...]]
    ) -> None:
        """Write the lists of tools and the moved lines into the new segment, run by run."""
        if not pieces:
            return
        name = segment_name(self._plan.segment)
        self._folder.remove(name)
        segment = self._folder.open(name)
        try:
            for digest in dict.fromkeys(over.toolset for over in self._plan.over.values() if over.toolset):
                if len(lists.get(digest, b"")) != self._plan.toolsets[digest].length:
                    raise OSError(f"{MAIN} holds another list of tools than was written")
                segment.append(lists[digest])
            for run, places in pieces.items():
                self._pace.breathe()
                data = b"".join(moved.pop(run, ()))  # let go one by one: all at once would hold up the other threads
                if len(data) != places[-1].length:
                    raise OSError(f"{MAIN} holds other lines of {run} than were written")
                segment.append(data)
            segment.sync()
        finally:
            segment.close()


class _Pace:
    """Lets the event loop have the interpreter after every millisecond of this thread's work."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._since = 0.0

    def begin(self) -> None:
        """Begin to count, in the thread that does the work."""
        self._since = time.thread_time()

    def breathe(self) -> None:
        """Pause if it is time to.

        Raises:
            StoppedError: told so.
        """
        if time.thread_time() - self._since < _WORK_S:
            return
        if self._stop.wait(_BREATH_S):
            raise StoppedError
        self._since = time.thread_time()


def _lines_up_to(file: BinaryIO, size: int) -> Iterator[bytes]:
    left = size
    while left > 0:
        line = file.readline(left)
        if not line:
            return
        left -= len(line)
        yield line
