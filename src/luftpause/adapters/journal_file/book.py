"""What the journal knows by heart: where each run's lines stand, which runs are over, and which trees are the oldest.

Owned by the event loop. Nothing in here touches the disk.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from luftpause.adapters.journal_file.lines import Piece, Record
from luftpause.adapters.journal_file.reading import BEGINNING, Span
from luftpause.core.model.ids import ActiveMs, RunId
from luftpause.core.runs.condensing import RunCondensed

SHORT_LINE_BYTES: Final = 500
"""What a condensed run's line is taken to measure where nobody remembers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long runs that are over are kept. Trees go as a whole, the one that ended first before others.

    Attributes:
        keep_runs: so many, whatever their age; trees that still live count for nothing.
        keep_for_s: none that ended longer ago than this, None for no such limit.
    """

    keep_runs: int = 100_000
    keep_for_s: float | None = 30 * 86_400.0


@dataclass(slots=True)
class Known:
    """One run.

    Attributes:
        pieces: its lines in the archive.
        spans: its lines in the main file, after those; none when a condensed record stands there for them.
        short: what is to stand for its lines, None while it lives.
        over: whether it is; then it counts for retention.
        at: when its last record was written, on its tree's clock; `utc_s` for people and for retention.
    """

    tree: RunId
    seq: int = 0
    pieces: tuple[Piece, ...] = ()
    spans: list[Span] = field(default_factory=list)
    short: Record | None = None
    over: bool = False
    at: ActiveMs = BEGINNING
    utc_s: float = 0.0

    def length(self) -> int:
        """Return the length of its lines in the main file, a condensed one left out."""
        return sum(span.length for span in self.spans)

    def waste(self) -> int:
        """Return how much shorter the main file might be without them."""
        return self.length() + (SHORT_LINE_BYTES if self.pieces else 0)


@dataclass(slots=True)
class _Tree:
    runs: list[RunId] = field(default_factory=list)
    open: int = 0


@dataclass(frozen=True, slots=True)
class Over:
    """A run that is over: what stands for its lines, which of them the archive has, and the length of the others."""

    short: Record
    pieces: tuple[Piece, ...]
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tidying:
    """What a compaction is to do with the first `size` bytes of the main file.

    Attributes:
        over: runs whose lines go to the archive.
        forgotten: runs whose lines go nowhere.
        segment: number of the new segment.
    """

    size: int
    over: dict[RunId, Over]
    forgotten: frozenset[RunId]
    segment: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tidied:
    """What came of it: the new length, where the lines that stayed stand now, and where the others went."""

    size: int
    spans: dict[RunId, list[Span]]
    pieces: dict[RunId, Piece]


class Book:
    """The journal's own memory."""

    def __init__(self, retention: Retention, segment_last: int = 0) -> None:
        self._retention = retention
        self._known: dict[RunId, Known] = {}
        self._loose: dict[RunId, Known] = {}
        self._trees: dict[RunId, _Tree] = {}
        self._ended: OrderedDict[RunId, float] = OrderedDict()
        self._ended_runs = 0
        self._forgotten: set[RunId] = set()
        self._segments: dict[int, int] = {}
        self._segment_last = segment_last
        self._since: dict[RunId, list[Span]] | None = None
        self.size = 0
        self.waste = 0

    def enter(self, run: RunId, known: Known) -> None:
        """Take in what the file holds of a run. In the order of `utc_s`, so that the oldest goes first."""
        self._known[run] = known
        tree = self._live(known.tree)
        tree.runs.append(run)
        tree.open += 1
        for piece in known.pieces:
            self._count(piece, 1)
        if known.spans:
            self._loose[run] = known
        if known.over:
            self._close(known)

    def seq(self, run: RunId) -> int:
        """Return the run's last sequence number, 0 for one that is not known."""
        known = self._known.get(run)
        return 0 if known is None else known.seq

    def last_seq(self) -> dict[RunId, int]:
        """Return those of all runs."""
        return {run: known.seq for run, known in self._known.items()}

    def add(self, records: Sequence[Record], length: int) -> None:
        """Note that records of one run, one at least, were written at the end, `length` bytes in all."""
        last = records[-1]
        run, tree = last.event.run, last.tree
        known = self._known.get(run)
        if known is None:
            known = Known(tree=tree)
            self.enter(run, known)
        elif known.over:
            self._reopen(known)
        known.seq, known.at, known.utc_s = last.seq, last.at, last.utc_s
        span = Span(self.size, length)
        self.size += length
        known.spans.append(span)
        self._loose[run] = known
        if self._since is not None:
            self._since.setdefault(run, []).append(span)

    def settle(self, kept: RunCondensed, epoch: int) -> None:
        """Note that a run is over, and what is to stand for its lines."""
        known = self._known.get(kept.run)
        if known is None or known.over or not known.spans:
            return
        known.short = Record(
            seq=known.seq,
            tree=known.tree,
            epoch=epoch,
            at=known.at,
            utc_s=known.utc_s,
            event=kept,
        )
        self._close(known)
        self.waste += known.waste()

    def expire(self, utc_s: float) -> tuple[RunId, ...]:
        """Forget what is too old or too much, and return the runs that are gone."""
        gone: list[RunId] = []
        keep_for_s = self._retention.keep_for_s
        while self._ended:
            tree, ended_s = next(iter(self._ended.items()))
            expired = keep_for_s is not None and ended_s < utc_s - keep_for_s
            if not expired and self._ended_runs <= self._retention.keep_runs:
                break
            gone.extend(self._forget(tree))
        return tuple(gone)

    def where(self, run: RunId) -> tuple[tuple[Piece, ...], tuple[Span, ...]] | None:
        """Return where a run's lines are, in the archive and after that in the main file; None if it is not known."""
        known = self._known.get(run)
        return None if known is None else (known.pieces, tuple(known.spans))

    def begin(self) -> Tidying:
        """Say what there is to tidy up; until `end` or `leave` what is added is remembered by itself."""
        self._since = {}
        return Tidying(
            size=self.size,
            over={
                run: Over(known.short, known.pieces, known.length())
                for run, known in self._loose.items()
                if known.short is not None
            },
            forgotten=frozenset(self._forgotten),
            segment=self._segment_last + 1,
        )

    def leave(self) -> None:
        """Nothing came of it."""
        self._since = None

    def end(self, plan: Tidying, done: Tidied) -> None:
        """Take over what came of it: the main file is another one now."""
        since, self._since = self._since or {}, None
        shift = done.size - plan.size
        self.size += shift
        self._segment_last = plan.segment
        if done.pieces:
            self._segments.setdefault(plan.segment, 0)
        for run, piece in done.pieces.items():
            known = self._known.get(run)
            if known is not None:  # it may have been forgotten meanwhile
                known.pieces = (*known.pieces, piece)
                self._count(piece, 1)
        for run in list(self._loose):
            known = self._loose[run]
            later = [Span(span.offset + shift, span.length) for span in since.get(run, ())]
            known.spans = done.spans.get(run, []) + later
            if not later and run in plan.over:
                known.short = None
                del self._loose[run]
        self._forgotten -= plan.forgotten
        self.waste = len(self._forgotten) * SHORT_LINE_BYTES
        self.waste += sum(known.waste() for known in self._loose.values() if known.short is not None)

    def dead_segments(self) -> Sequence[int]:
        """Return the segments that no run needs any more, once."""
        dead = [segment for segment, runs in self._segments.items() if not runs]
        for segment in dead:
            del self._segments[segment]
        return dead

    def _close(self, known: Known) -> None:
        known.over = True
        tree = self._trees[known.tree]
        tree.open -= 1
        if not tree.open:
            self._ended[known.tree] = known.utc_s
            self._ended_runs += len(tree.runs)

    def _reopen(self, known: Known) -> None:
        known.over = False
        if known.short is not None:
            self.waste -= known.waste()
            known.short = None
        self._live(known.tree).open += 1

    def _live(self, tree: RunId) -> _Tree:
        """Return a tree that something happens in, and so does not grow old."""
        known = self._trees.setdefault(tree, _Tree())
        if self._ended.pop(tree, None) is not None:
            self._ended_runs -= len(known.runs)
        return known

    def _forget(self, tree: RunId) -> Sequence[RunId]:
        del self._ended[tree]
        runs = self._trees.pop(tree).runs
        self._ended_runs -= len(runs)
        for run in runs:
            known = self._known.pop(run)
            self._loose.pop(run, None)
            # Settled lines count as waste already.
            self.waste += SHORT_LINE_BYTES if known.short is None else 0
            for piece in known.pieces:
                self._count(piece, -1)
        self._forgotten.update(runs)
        return runs

    def _count(self, piece: Piece, by: int) -> None:
        self._segments[piece.segment] = self._segments.get(piece.segment, 0) + by
