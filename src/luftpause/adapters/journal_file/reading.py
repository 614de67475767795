"""From the lines of a journal file to histories: what is sound, what is torn off, and which runs are damaged.

Broken lines that nothing sound follows are a write that never ended, be they one or many: they are cut off. Condensed
runs are none of those, for they come into the file in one piece with it. Any other broken line was once acknowledged:
the run that it belongs to must not go on, or it might do again what the lost record says was done. When the line does
not tell whose it was, every unfinished run that shows no later record may have lost it, so all of those are damaged;
runs whose sequence numbers go on without a gap have proven that it was not theirs. A run whose ending is sound has
nothing to go on with: its result stays, whatever was lost before it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from luftpause.adapters.journal_file.lines import BrokenLineError, Record, decode, is_condensed
from luftpause.core.model.ids import ActiveMs, RunId
from luftpause.core.runs.condensing import RunCondensed
from luftpause.core.runs.events import Ending
from luftpause.core.runs.replay import Entry, History

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
    """

    kept: Record | None = None
    entries: list[Entry] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    last_seq: int = 0
    tree: RunId = ANONYMOUS_TREE
    at: ActiveMs = BEGINNING
    utc_s: float = 0.0
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
    """

    runs: dict[RunId, RunLines]
    epoch: int
    sound_bytes: int
    broken_lines: tuple[int, ...]


@dataclass(slots=True)
class _Reader:
    runs: dict[RunId, RunLines] = field(default_factory=dict)
    suspects: dict[RunId, tuple[int, int]] = field(default_factory=dict)
    broken: list[int] = field(default_factory=list)
    epoch: int = 0

    def take(self, number: int, record: Record, span: Span) -> None:
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
        if not lines.damage:
            lines.last_seq = record.seq
        if not lines.damage or isinstance(event, Ending):
            lines.entries.append(Entry(event, record.at))

    def lose(self, number: int, line: bytes, span: Span) -> None:
        """A broken line: find out whose it was, or who may have lost it."""
        self.broken.append(number)
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
            record = decode(line[:-1])
        except BrokenLineError:
            broken.append((number, line, span))
            continue
        for lost in broken:
            reader.lose(*lost)
        broken.clear()
        reader.take(number, record, span)
        sound_bytes = offset
    while any(is_condensed(line) for _, line, _ in broken):
        lost = broken.pop(0)
        reader.lose(*lost)
        sound_bytes = lost[2].offset + lost[2].length
    reader.convict()
    return Scan(runs=reader.runs, epoch=reader.epoch, sound_bytes=sound_bytes, broken_lines=tuple(reader.broken))


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
