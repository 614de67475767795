"""From the lines of a journal file to histories: what is sound, what is torn off, and which runs are damaged.

Broken lines that nothing sound follows are a write that never ended, be they one or many: they are cut off. A broken
line before a sound one was once acknowledged: the run that it belongs to must not go on, or it might do again what the
lost record says was done. When the line does not tell whose it was, every unfinished run that shows no later record may
have lost it, so all of those are damaged; runs whose sequence numbers go on without a gap have proven that it was not
theirs. A run whose ending is sound has nothing to go on with: its result stays, whatever was lost before it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from luftpause.adapters.journal_file.lines import BrokenLineError, Record, decode
from luftpause.core.model.ids import RunId
from luftpause.core.runs.events import Ending
from luftpause.core.runs.replay import Entry, History

_NAMED_RUN: Final = re.compile(rb'"run":"([^"\\]{1,256})"')
_FIRST_RECORD: Final = re.compile(rb'\{"v":\d+,"seq":1,')


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What a file holds.

    Attributes:
        epoch: the highest that any record carries, 0 for none.
        sound_bytes: length of the file without a torn end.
        broken_lines: numbers of broken lines before the end, from 1.
    """

    histories: tuple[History, ...]
    last_seq: dict[RunId, int]
    epoch: int
    sound_bytes: int
    broken_lines: tuple[int, ...]


@dataclass(slots=True)
class _Reader:
    entries: dict[RunId, list[Entry]] = field(default_factory=dict)
    last_seq: dict[RunId, int] = field(default_factory=dict)
    damage: dict[RunId, str] = field(default_factory=dict)
    suspects: dict[RunId, tuple[int, int]] = field(default_factory=dict)
    broken: list[int] = field(default_factory=list)
    epoch: int = 0

    def take(self, number: int, record: Record) -> None:
        run = record.event.run
        self.epoch = max(self.epoch, record.epoch)
        entries = self.entries.setdefault(run, [])
        entry = Entry(record.event, record.at)
        expected = self.last_seq.get(run, 0) + 1
        if record.seq != expected:
            self.damage.setdefault(run, f"its journal is damaged: record {expected} is missing before line {number}")
        if run in self.damage:
            if isinstance(record.event, Ending):
                entries.append(entry)
            return
        self.last_seq[run] = record.seq
        entries.append(entry)

    def lose(self, number: int, line: bytes) -> None:
        """A broken line: find out whose it was, or who may have lost it."""
        self.broken.append(number)
        named = _NAMED_RUN.search(line)
        run = None if named is None else RunId(named.group(1).decode("utf-8", "replace"))
        if run is not None and (run in self.entries or _FIRST_RECORD.match(line)):
            self.entries.setdefault(run, [])
            self.damage.setdefault(run, f"its journal is damaged at line {number}")
            return
        for each, entries in self.entries.items():
            if not isinstance(entries[-1].event if entries else None, Ending):
                self.suspects[each] = (number, self.last_seq.get(each, 0))

    def histories(self) -> tuple[History, ...]:
        for run, (number, seq) in self.suspects.items():
            if self.last_seq.get(run, 0) == seq:
                self.damage.setdefault(run, f"its journal may be damaged at line {number}")
        return tuple(
            History(run=run, entries=tuple(entries), damage=self.damage.get(run, ""))
            for run, entries in self.entries.items()
        )


def scan(lines: Iterable[bytes]) -> Scan:
    """Read a file's lines, newlines included.

    Raises:
        NewerVersionError: a newer luftpause wrote some of it.
    """
    reader = _Reader()
    sound_bytes = 0
    broken: list[tuple[int, bytes]] = []
    for number, line in enumerate(lines, start=1):
        try:
            if not line.endswith(b"\n"):
                raise BrokenLineError("torn")
            record = decode(line[:-1])
        except BrokenLineError:
            broken.append((number, line))
            continue
        for lost_number, lost in broken:
            reader.lose(lost_number, lost)
            sound_bytes += len(lost)
        broken.clear()
        reader.take(number, record)
        sound_bytes += len(line)
    return Scan(
        histories=reader.histories(),
        last_seq=reader.last_seq,
        epoch=reader.epoch,
        sound_bytes=sound_bytes,
        broken_lines=tuple(reader.broken),
    )
