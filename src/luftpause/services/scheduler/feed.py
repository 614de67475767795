"""What the page is told while somebody looks: first everything, then once a second what changed. Bounded.

All that look share one look at the state. Nobody has a queue: each is told what changed since it was told last, so
whoever reads slowly is told less often, and never more.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Final, cast

import msgspec

from luftpause.core.model.ids import Instant
from luftpause.ports.run_trees import RuntimeAwayError, RunTrees
from luftpause.services.scheduler.family_rows import Member
from luftpause.services.scheduler.models_json import Json
from luftpause.services.scheduler.phases import Change
from luftpause.services.scheduler.rows import Rows
from luftpause.services.scheduler.status_json import Seen, sections
from luftpause.services.scheduler.timeline import Timeline
from luftpause.services.scheduler.timeline_json import change_row, from_the_start, lane_row, lanes_of, since_told

PERIOD_S: Final = 1.0
TREE_PERIODS: Final = 2
"""Families and the runs of runtimes are told every so many periods: they are the largest tables."""
QUIET_PERIODS: Final = 15
"""After so many periods without news a comment tells whether the reader is still there."""
BACK_S: Final = 300.0
"""Whoever begins to look is told the timeline of so long."""
READERS_MAX: Final = 64
SEAT_S: Final = 60.0
"""Whoever has looked for so long makes room when others want to look and all seats are taken: it may ask again."""
CHILDREN_TOLD_MAX: Final = 10
"""Of a family; `omitted` counts the others."""

_log = logging.getLogger("luftpause.scheduler")

_KEYS: Final[dict[str, Callable[[Json], str]]] = {
    "replicas": lambda row: str(row["name"]),
    "held": lambda row: f"{row['class']} {row['caller']}",
    "runs": lambda row: f"{row['phase']} {row['class']}",
    "callers": lambda row: f"{row['principal']} {row['caller']}",
    "tools": lambda row: f"{row['server']} {row['tool']}",
    "families": lambda row: str(row["run"]),
    "peers": lambda row: str(row["name"]),
    "models": lambda row: str(row["name"]),
    "devices": lambda row: f"{row['launcher']} {row['device']}",
}


class _Trees:
    """The runs of one runtime; without one, none."""

    def __init__(self) -> None:
        self.rows = Rows()
        self.about: Json = {}
        self.changed_in = 0
        self.readers = 0

    def tell(self, about: Json, version: int) -> bool:
        """Take in how the runtime itself is; return whether that changed."""
        if about == self.about:
            return False
        self.about, self.changed_in = about, version
        return True


class Feed:
    """The streams of all that look.

    Args:
        look: returns the moment.
        about: returns what is said of the scheduler itself.
        timeline: of the same scheduler.
        trees: runtimes to ask.
        started: returns when the scheduler was started.
    """

    def __init__(
        self,
        look: Callable[[], Seen],
        about: Callable[[], Json],
        timeline: Timeline,
        trees: RunTrees,
        started: Callable[[], Instant],
    ) -> None:
        self._look = look
        self._about = about
        self._timeline = timeline
        self._runtimes = trees
        self._started = started
        self._tables = {name: Rows() for name in _KEYS}
        self._trees: dict[str | None, _Trees] = {}
        self._version = 0
        self._seats: dict[object, float] = {}  # since when each is taken, the first to be taken first
        self._news = asyncio.Event()
        self._looking = asyncio.Lock()
        self._work: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def is_watched(self) -> bool:
        """Whether anybody looks."""
        return bool(self._seats)

    @property
    def is_closed(self) -> bool:
        """Whether nobody is told anything any more."""
        return self._closed

    def room_in_s(self) -> float:
        """Return after how long one more may look; 0 for at once."""
        if len(self._seats) < READERS_MAX:
            return 0.0
        now = asyncio.get_running_loop().time()
        return max(0.0, min(self._seats.values(), default=now) + SEAT_S - now)

    async def stream(self, runtime: str | None) -> AsyncGenerator[bytes, None]:
        """Yield server-sent events until the feed is closed, the reader leaves or has to make room.

        `runtime` is the base URL of a known runtime, whose runs are told too, or None.
        """
        if self._closed or self.room_in_s():
            return  # who asked together with others was let in with them; a page that is ended asks again
        trees = self._trees.setdefault(runtime, _Trees())
        seat = self._seated()
        trees.readers += 1
        try:
            work = self._working()
            await self._take_in({runtime: trees}, families=True)
            async for event in self._told(trees, work, seat):
                yield event
        finally:
            trees.readers -= 1
            self._seats.pop(seat, None)
            if not self._seats and self._work is not None:
                self._work.cancel()
                self._work = None

    def _seated(self) -> object:
        """Return a seat; whoever has looked for longest makes room if need be."""
        if len(self._seats) >= READERS_MAX:
            del self._seats[next(iter(self._seats))]
            self._wake()
        seat = object()
        self._seats[seat] = asyncio.get_running_loop().time()
        return seat

    def close(self) -> None:
        """End every stream."""
        self._closed = True
        self._wake()

    def _working(self) -> asyncio.Task[None]:
        """Return the task that looks again every period."""
        if self._work is None:
            self._work = asyncio.create_task(self._go_on(), name="status-feed")
            self._work.add_done_callback(self._ended)
        return self._work

    def _ended(self, work: asyncio.Task[None]) -> None:
        """End the streams of a look that failed: a page that begins anew gets another one."""
        error = None if work.cancelled() else work.exception()
        if error is not None:
            _log.error("status_feed_failed", exc_info=error)
            self._work = None
            self._wake()

    def _wake(self) -> None:
        """Let everybody look whether there is anything new."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _told(self, trees: _Trees, work: asyncio.Task[None], seat: object) -> AsyncIterator[bytes]:
        version, told, lane = 0, 0, 0
        while self._goes_on(work, seat):
            changes = since_told(self._timeline, told) if version else self._beginning()
            # A model's lane stays when the model goes, and the page may have let go of it: it is told with each change.
            lanes = [each for each in lanes_of(changes) if each.number > lane or each.is_model]
            update = self._since(version, trees)
            if changes:
                started = self._started()
                update["lanes"] = [lane_row(each) for each in lanes]
                update["changes"] = [change_row(change, started) for change in changes]
            version, told = self._version, self._timeline.told
            lane = max(lane, lanes[-1].number) if lanes else lane
            if update:
                update["now_ms"] = round((self._look().now - self._started()) * 1000)
                yield b"data: " + await asyncio.to_thread(msgspec.json.encode, update) + b"\n\n"
            else:
                yield b": still here\n\n"
            await self._later(version, told, lambda: self._goes_on(work, seat))

    def _beginning(self) -> Sequence[Change]:
        return from_the_start(self._timeline, self._look().now, BACK_S)

    def _since(self, version: int, trees: _Trees) -> Json:
        """Return what changed in all tables after a version; all there is, for 0."""
        update: Json = {}
        if not version:
            update["about"] = self._about()
        tables = {name: table.since(version) for name, table in {**self._tables, "trees": trees.rows}.items()}
        changed = {name: table for name, table in tables.items() if table}
        if changed:
            update["tables"] = changed
        if trees.changed_in > version:
            update["runtime"] = trees.about
        return update

    def _goes_on(self, work: asyncio.Task[None], seat: object) -> bool:
        return not self._closed and self._work is work and seat in self._seats

    async def _later(self, version: int, told: int, goes_on: Callable[[], bool]) -> None:
        """Wait for news, or for long enough without."""
        for _ in range(QUIET_PERIODS):
            if not goes_on() or self._version > version or self._timeline.told > told:
                return
            await self._news.wait()

    async def _go_on(self) -> None:
        """Look again every period, as long as anybody reads."""
        periods = 0
        while True:
            await asyncio.sleep(PERIOD_S)
            periods += 1
            due = periods % TREE_PERIODS == 0
            await self._take_in(
                {url: trees for url, trees in self._trees.items() if trees.readers and due}, families=due
            )
            self._wake()

    async def _take_in(self, asked: Mapping[str | None, _Trees], *, families: bool) -> None:
        """Look at the state, in a thread, and at the runs of some runtimes."""
        async with self._looking:
            found = await asyncio.to_thread(sections, self._look())
            version = self._version + 1
            changed = [
                self._tables[name].put(_keyed(name, rows), version)
                for name, rows in found.items()
                if families or name != "families"
            ]
            for url, trees in asked.items():
                if url is not None:
                    changed.append(await self._ask(url, trees, version))
            if any(changed) or not self._version:
                self._version = version

    async def _ask(self, url: str, trees: _Trees, version: int) -> bool:
        try:
            tree = await self._runtimes.look(url)
        except RuntimeAwayError as error:
            return trees.tell({"url": url, "away": str(error), "omitted": 0}, version)
        changed = trees.rows.put(((run.handle, msgspec.to_builtins(run)) for run in tree.runs), version)
        return trees.tell({"url": url, "away": "", "omitted": tree.omitted}, version) or changed


def _keyed(name: str, rows: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    """Yield the rows of a table with keys of their own, cut to what a page shows."""
    seen: dict[str, int] = {}
    for row in rows:
        key = _KEYS[name](row)
        seen[key] = seen.get(key, 0) + 1
        if name == "families":
            row = _cut(row)
        yield (key if seen[key] == 1 else f"{key} {seen[key]}"), row


def _cut(family: Json) -> Json:
    children = cast("list[Member]", family["children"])
    left_out = max(0, len(children) - CHILDREN_TOLD_MAX)
    return {**family, "children": children[:CHILDREN_TOLD_MAX], "omitted": cast("int", family["omitted"]) + left_out}
