"""From the lines of a journal file to histories: what is sound, what is torn off, and which runs are damaged.

Broken lines that nothing sound follows are a write that never ended, be they one or many: they are cut off. Condensed
runs are none of those, for they come into the file in one piece with it. Any other broken line was once acknowledged:
the run that it belongs to must not go on, or it might do again what the lost record says was done. When the line does
not tell whose it was, every unfinished run that shows no later record may have lost it, so all of those are damaged;
runs whose sequence numbers go on without a gap have proven that it was not theirs. A run whose ending is sound has
nothing to go on with: its result stays, whatever was lost before it. A list of tools stands before the spawns that name
it; a run whose list is not there has lost a part of its own first record.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import msgspec

from luftpause.adapters.journal_file.checksums import BrokenLineError, require_sound
from luftpause.adapters.journal_file.lines import Record, decode, is_condensed, refuse_newer
from luftpause.adapters.journal_file.toolsets import digest_in, tools_in
from luftpause.core.model.ids import ActiveMs, RunId
from luftpause.core.runs.condensing import RunCondensed
from luftpause.core.runs.events import Ending, RunSpawned
from luftpause.core.runs.replay import Entry, History
from luftpause.core.runs.tools import ToolSpec

_NAMED_RUN: Final = re.compile(rb'"run":"([^"\\]{1,256})"')
_FIRST_RECORD: Final = re.compile(rb'\{"v":\d+,"seq":1,')


ANONYMOUS_TREE: Final = RunId("")
BEGINNING: Final = ActiveMs(0)


class Span(NamedTuple):
    """Where a line stands in the file, bytes, its newline included."""

    offset: int
    length: int


@dataclass(slots=True)
class RunLines:
    """What a file holds of one run.

    Attributes:
        kept: its condensed record, which stands for all up to its sequence number.
        entries: those after that, as far as they are sound, and the run's ending if that is.
        spans: where the lines of the entries stand, broken ones that name the run too.
        at: when the last of its records was written, on its tree's clock; `utc_s` for people.
        toolset: the list of tools that the first of the entries names, empty if it names none.
    """

    kept: Record | None = None
    entries: list[Entry] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    last_seq: int = 0
    tree: RunId = ANONYMOUS_TREE
    at: ActiveMs = BEGINNING
    utc_s: float = 0.0
    toolset: str = ""
    damage: str = ""

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to go on with."""
        return isinstance(self.entries[-1].event, Ending) if self.entries else self.kept is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What a file holds.

    Attributes:
        epoch: the highest that any record carries, 0 for none.
        sound_bytes: length of the file without a torn end.
        broken_lines: numbers of broken lines before the end, from 1.
        toolsets: where each list of tools stands, the last time that it does.
    """

    runs: dict[RunId, RunLines]
    epoch: int
    sound_bytes: int
    broken_lines: tuple[int, ...]
    toolsets: dict[str, Span]


class _Versioned(msgspec.Struct):
    v: int


@dataclass(slots=True)
class _Reader:
    runs: dict[RunId, RunLines] = field(default_factory=dict)
    suspects: dict[RunId, tuple[int, int]] = field(default_factory=dict)
    broken: list[int] = field(default_factory=list)
    toolsets: dict[str, tuple[ToolSpec, ...]] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)
    epoch: int = 0

    def take(self, number: int, record: Record | tuple[ToolSpec, ...], line: bytes, span: Span) -> None:
        if isinstance(record, Record):
            self._take_record(number, record, span)
            return
        digest = digest_in(line) or ""
        self.places[digest] = span
        # The first of them for all: whoever compares two spawns finds the very same tools.
        self.toolsets.setdefault(digest, record)

    def _take_record(self, number: int, record: Record, span: Span) -> None:
        event = record.event
        lines = self.runs.get(event.run)
        if lines is None:
            lines = self.runs[event.run] = RunLines()
        lines.tree, lines.at, lines.utc_s = record.tree, record.at, record.utc_s
        self.epoch = max(self.epoch, record.epoch)
        if isinstance(event, RunCondensed):
            lines.kept, lines.last_seq = record, record.seq
            return
        lines.spans.append(span)
        expected = lines.last_seq + 1
        if record.seq != expected and not lines.damage:
            lines.damage = f"its journal is damaged: record {expected} is missing before line {number}"
        if isinstance(event, RunSpawned) and record.toolset:
            tools = self.toolsets.get(record.toolset)
            if tools is None:
                lines.damage = lines.damage or f"its journal is damaged: its tools are missing before line {number}"
            else:
                lines.toolset, event = record.toolset, replace(event, tools=tools)
        if not lines.damage:
            lines.last_seq = record.seq
        if not lines.damage or isinstance(event, Ending):
            lines.entries.append(Entry(event, record.at))

    def lose(self, number: int, line: bytes, span: Span) -> None:
        """A broken line: find out whose it was, or who may have lost it."""
        self.broken.append(number)
        if digest_in(line) is not None:
            return  # whoever needs it and finds no other copy says so
        run = run_named(line)
        if run is not None and (run in self.runs or _FIRST_RECORD.match(line) or is_condensed(line)):
            lines = self.runs.setdefault(run, RunLines())
            lines.spans.append(span)
            lines.damage = lines.damage or f"its journal is damaged at line {number}"
            return
        for each, lines in self.runs.items():
            if not lines.is_over:
                self.suspects[each] = (number, lines.last_seq)

    def convict(self) -> None:
        """Whoever shows no later record than before a nameless broken line may have lost it."""
        for run, (number, seq) in self.suspects.items():
            lines = self.runs[run]
            if lines.last_seq == seq and not lines.damage:
                lines.damage = f"its journal may be damaged at line {number}"


def scan(lines: Iterable[bytes]) -> Scan:
    """Read a file's lines, newlines included.

    Raises:
        NewerVersionError: a newer luftpause wrote some of it.
    """
    reader = _Reader()
    offset = sound_bytes = 0
    broken: list[tuple[int, bytes, Span]] = []
    for number, line in enumerate(lines, start=1):
        span = Span(offset, len(line))
        offset += len(line)
        try:
            if not line.endswith(b"\n"):
                raise BrokenLineError("torn")
            record = _read(line[:-1])
        except BrokenLineError:
            broken.append((number, line, span))
            continue
        for lost in broken:
            reader.lose(*lost)
        broken.clear()
        reader.take(number, record, line, span)
        sound_bytes = offset
    while any(is_condensed(line) for _, line, _ in broken):
        lost = broken.pop(0)
        reader.lose(*lost)
        sound_bytes = lost[2].offset + lost[2].length
    reader.convict()
    return Scan(
        runs=reader.runs,
        epoch=reader.epoch,
        sound_bytes=sound_bytes,
        broken_lines=tuple(reader.broken),
        toolsets=reader.places,
    )


def _read(line: bytes) -> Record | tuple[ToolSpec, ...]:
    if digest_in(line) is None:
        return decode(line)
    require_sound(line)
    try:
        refuse_newer(msgspec.json.decode(line, type=_Versioned).v)
        return tools_in(line)
    except msgspec.MsgspecError as error:
        raise BrokenLineError(f"no list of tools: {error}") from error


def run_named(line: bytes) -> RunId | None:
    """Return the run that a line names first, sound or not."""
    named = _NAMED_RUN.search(line)
    return None if named is None else RunId(named.group(1).decode("utf-8", "replace"))


def history_of(run: RunId, lines: Iterable[bytes]) -> History:
    """Return the history of one run from its own lines, in order."""
    found = scan(lines)
    mine = found.runs.pop(run, RunLines())
    if not mine.damage and (found.runs or found.broken_lines or not mine.entries):
        mine.damage = "its archive is damaged"
    return History(run=run, entries=tuple(mine.entries), damage=mine.damage)
