"""What the journal knows by heart: where each run's lines stand, which runs are over, and which trees are the oldest.

Owned by the event loop. Nothing in here touches the disk.
"""

from collections import OrderedDict
from collections.abc import Generator, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from luftpause.adapters.journal_file.lines import Piece, Record
from luftpause.adapters.journal_file.reading import BEGINNING, Span
from luftpause.core.model.ids import ActiveMs, RunId
from luftpause.core.runs.condensing import RunCondensed

SHORT_LINE_BYTES: Final = 500
"""What a condensed run's line is taken to measure where nobody remembers."""

AT_ONCE: Final = 100
"""Runs that `Book.begin` and `Book.end` look at in one step: a millisecond of work at most."""


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
        ready: how its lines are to be put away, None while it lives.
        over: whether it is; then it counts for retention.
        at: when its last record was written, on its tree's clock; `utc_s` for people and for retention.
        toolset: the list of tools that its lines in the main file name, empty if they name none.
    """

    tree: RunId
    seq: int = 0
    pieces: tuple[Piece, ...] = ()
    spans: list[Span] = field(default_factory=list)
    ready: "Over | None" = None
    over: bool = False
    at: ActiveMs = BEGINNING
    utc_s: float = 0.0
    toolset: str = ""

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
    """A run that is over: what stands for its lines, which of them the archive has, and the length of the others.

    Attributes:
        toolset: the list of tools that those others name, empty if they name none.
    """

    short: Record
    pieces: tuple[Piece, ...]
    length: int
    toolset: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tidying:
    """What a compaction is to do with the first `size` bytes of the main file.

    Attributes:
        over: runs whose lines go to the archive.
        forgotten: runs whose lines go nowhere.
        segment: number of the new segment.
        toolsets: where the lists of tools stand.
        staying: those that lines name which stay.
    """

    size: int
    over: dict[RunId, Over]
    forgotten: Set[RunId]
    segment: int
    toolsets: dict[str, Span]
    staying: Set[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tidied:
    """What came of it: the new length, where the lines that stayed stand now, and where the others went."""

    size: int
    spans: dict[RunId, list[Span]]
    pieces: dict[RunId, tuple[Piece, ...]]
    toolsets: dict[str, Span]


class ListPlaces:
    """Where lists of tools stand in the main file."""

    def __init__(self) -> None:
        self._places: dict[str, Span] = {}
        self._since: dict[str, Span] | None = None

    def __getitem__(self, digest: str) -> Span:
        return self._places[digest]

    def enter(self, places: Mapping[str, Span]) -> None:
        """Take in what the file holds."""
        self._places.update(places)

    def may_be_named(self, digest: str) -> bool:
        """Whether what is written from now on may name this list.

        While the file is tidied up only what was added since counts: the others may be on their way out.
        """
        return digest in (self._places if self._since is None else self._since)

    def add(self, digest: str, place: Span) -> None:
        """Note that a list was written."""
        self._places[digest] = place
        if self._since is not None:
            self._since[digest] = place

    def begin(self) -> dict[str, Span]:
        """Return all of them, as a compaction finds them."""
        self._since = {}
        return dict(self._places)

    def leave(self) -> None:
        """Nothing came of it."""
        self._since = None

    def end(self, stayed: Mapping[str, Span], shift: int) -> None:
        """Take over where those stand that stayed; those that came meanwhile moved by so much."""
        since, self._since = self._since or {}, None
        moved = {digest: Span(place.offset + shift, place.length) for digest, place in since.items()}
        self._places = {**stayed, **moved}


class Book:
    """The journal's own memory. `lists` knows where the lists of tools stand."""

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
        self.lists = ListPlaces()
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

    def written_utc(self, run: RunId) -> float:
        """Return when the run's last record was written, seconds of UTC; 0 for one that is not known."""
        known = self._known.get(run)
        return 0.0 if known is None else known.utc_s

    def last_seq(self) -> dict[RunId, int]:
        """Return those of all runs."""
        return {run: known.seq for run, known in self._known.items()}

    def add(self, records: Sequence[Record], length: int, listed: int = 0) -> None:
        """Note that records of one run, one at least, were written at the end, `length` bytes in all.

        Before them go `listed` bytes: the list of tools that the first one names, where it was still to write.
        """
        if listed:
            self.lists.add(records[0].toolset, Span(self.size, listed))
            self.size += listed
        last = records[-1]
        run, tree = last.event.run, last.tree
        known = self._known.get(run)
        if known is None:
            known = Known(tree=tree)
            self.enter(run, known)
        elif known.over:
            self._reopen(known)
        known.seq, known.at, known.utc_s = last.seq, last.at, last.utc_s
        known.toolset = records[0].toolset or known.toolset
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
        short = Record(seq=known.seq, tree=known.tree, epoch=epoch, at=known.at, utc_s=known.utc_s, event=kept)
        known.ready = Over(short, known.pieces, known.length(), known.toolset)
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
        if known is None:
            return None
        listed = (self.lists[known.toolset],) if known.toolset else ()
        return known.pieces, (*listed, *known.spans)

    def begin(self) -> Generator[None, None, Tidying]:
        """Say, in steps, what there is to tidy up; until `end` or `leave` what is added is remembered by itself.

        Records may be added and runs settled between the steps: what was added since the first one stays.
        """
        since: dict[RunId, list[Span]] = {}
        self._since = since
        size, toolsets = self.size, self.lists.begin()
        forgotten, self._forgotten = self._forgotten, set()
        over: dict[RunId, Over] = {}
        staying: set[str] = set()
        for run in self._in_steps(list(self._loose)):
            if run is None:
                yield
            elif (known := self._loose.get(run)) is None:
                staying.update(toolsets)  # it was forgotten meanwhile: its lines stay this once, whatever they name
            elif known.ready is not None and run not in since:
                over[run] = known.ready
            elif known.toolset:
                staying.add(known.toolset)
        segment = self._segment_last + 1
        return Tidying(size=size, over=over, forgotten=forgotten, segment=segment, toolsets=toolsets, staying=staying)

    def leave(self, plan: Tidying) -> None:
        """Nothing came of it."""
        self._since = None
        self._forgotten |= plan.forgotten
        self.lists.leave()

    def end(self, plan: Tidying, done: Tidied) -> Generator[None, None, None]:
        """Take over, in steps, what came of it: from the first one on the main file is another one.

        Records may be added and runs settled between the steps. Until the last one `where` is not to be asked. What the
        plan and what came of it hold of runs is let go with them: all of it at once would be a long step, too.
        """
        before, self._since = self._since or {}, {}
        shift = done.size - plan.size
        self.lists.end(done.toolsets, shift)
        self.size += shift
        self._segment_last = plan.segment
        if done.pieces:
            self._segments.setdefault(plan.segment, 0)
        for run in self._in_steps(list(self._loose)):
            if run is None:
                yield
                continue
            known = self._loose.get(run)
            if known is not None:  # else it was forgotten meanwhile
                moved = [Span(span.offset + shift, span.length) for span in before.get(run, ())]
                self._move(run, known, done, moved + self._since.get(run, []))
            plan.over.pop(run, None)
        self._since = None
        self.waste = len(self._forgotten) * SHORT_LINE_BYTES
        self.waste += sum(known.waste() for known in self._loose.values() if known.ready is not None)

    def _move(self, run: RunId, known: Known, done: Tidied, later: list[Span]) -> None:
        """Note where a run's lines stand now. `later`: those that came since the compaction began."""
        pieces = done.pieces.pop(run, ())
        for piece in pieces:
            self._count(piece, 1)
        if pieces:
            known.pieces, known.toolset = (*known.pieces, *pieces), ""
        known.spans = done.spans.get(run, []) + later
        if not known.spans:
            known.ready = None
            del self._loose[run]
        elif known.ready is not None:
            known.ready = Over(known.ready.short, known.pieces, known.length(), known.toolset)

    @staticmethod
    def _in_steps(runs: Sequence[RunId]) -> Iterator[RunId | None]:
        """Yield runs, and None where a step ends."""
        for place, run in enumerate(runs, start=1):
            yield run
            if place % AT_ONCE == 0:
                yield None

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
        if known.ready is not None:
            self.waste -= known.waste()
            known.ready = None
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
            self.waste += SHORT_LINE_BYTES if known.ready is None else 0
            for piece in known.pieces:
                self._count(piece, -1)
        self._forgotten.update(runs)
        return runs

    def _count(self, piece: Piece, by: int) -> None:
        self._segments[piece.segment] = self._segments.get(piece.segment, 0) + by
