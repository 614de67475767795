"""Names in order of their standing, each with the queues that it stands in: a persistent list, cheap to change.

Thousands of callers may wait, and every placement changes where one of them stands. The list is cut into short chunks,
and whatever changes one copies that chunk and the list of chunks, nothing else. A set of queues is an integer with one
bit for each, so "does anybody in this chunk stand in one of those queues" is one operation, however many there are.
Standings are unique within a list. Knows nothing of what queues are.

Places are found by a search that is written out: with a key, `bisect` asks for each standing by its name.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from luftpause.core.scheduling.standings import Standing

Bits: TypeAlias = int
"""A set of queues, one bit for each."""

CHUNK_MAX: Final = 256
CHUNK_MIN: Final = 64
"""A longer chunk is cut in two, a shorter one joins a neighbour; an only one may be as short as it likes."""


class Entry(NamedTuple):
    """One name, and where it stands: never nowhere."""

    standing: Standing
    name: str
    queues: Bits


class Chunk(NamedTuple):
    """Neighbours. `queues`: where any of them stands."""

    first: Standing
    queues: Bits
    entries: tuple[Entry, ...]


class Ranking(NamedTuple):
    """The list. `queues`: where any of them stands. No chunk is empty."""

    queues: Bits = 0
    chunks: tuple[Chunk, ...] = ()

    @property
    def size(self) -> int:
        """How many there are: one look at each chunk."""
        return sum([len(chunk.entries) for chunk in self.chunks])

    def entries(self, among: Bits) -> Iterator[Entry]:
        """Yield all that stand in any of some queues, in order, none before it is asked for."""
        for chunk in self.chunks:
            if chunk.queues & among:
                for entry in chunk.entries:
                    if entry.queues & among:
                        yield entry

    def first(self, among: Bits) -> Entry | None:
        """Return the first that stands in any of some queues; None when nobody does."""
        if self.queues & among:
            for chunk in self.chunks:
                if chunk.queues & among:
                    for entry in chunk.entries:
                        if entry.queues & among:
                            return entry
        return None

    def joined(self, standing: Standing, name: str, queue: Bits) -> "Ranking":
        """Let a name stand in a queue, in others too if it is in the list already."""
        if not self.chunks:
            return Ranking(queue, (Chunk(standing, queue, (Entry(standing, name, queue),)),))
        at = self._chunk_of(standing)
        entries = self.chunks[at].entries
        position = _position(entries, standing)
        if _is_at(entries, position, standing):
            entry = (Entry(standing, name, entries[position].queues | queue),)
            entries = entries[:position] + entry + entries[position + 1 :]
        else:
            entry = (Entry(standing, name, queue),)
            entries = entries[:position] + entry + entries[position:]
        if len(entries) > CHUNK_MAX:
            return Ranking(self.queues | queue, self._with(at, at + 1, *_halves(entries)))
        fresh = Chunk(entries[0].standing, self.chunks[at].queues | queue, entries)
        return Ranking(self.queues | queue, self._with(at, at + 1, fresh))

    def left(self, standing: Standing, queue: Bits) -> "Ranking":
        """Let the one with that standing leave a queue; who stands in no other leaves the list."""
        at = self._chunk_of(standing)
        entries = self.chunks[at].entries
        position = _position(entries, standing)
        entry = entries[position]
        others = entry.queues & ~queue
        stays = (Entry(standing, entry.name, others),) if others else ()
        return self._shrunk(at, entries[:position] + stays + entries[position + 1 :], queue)

    def moved(self, old: Standing, new: Standing) -> "Ranking":
        """Change the standing of one of the list."""
        chunks = self.chunks
        at = self._chunk_of(old)
        here, entries = chunks[at].queues, chunks[at].entries
        if len(entries) == 1:  # most often there is one principal, and it moves with every turn
            return Ranking(here, (Chunk(new, here, (Entry(new, entries[0].name, here),)),))
        position = _position(entries, old)
        name, queues = entries[position].name, entries[position].queues
        entry = (Entry(new, name, queues),)
        rest = entries[:position] + entries[position + 1 :]
        to = self._chunk_of(new)
        if to == at:
            position = _position(rest, new)
            first = new if position == 0 else rest[0].standing
            fresh = Chunk(first, here, rest[:position] + entry + rest[position:])
            return Ranking(self.queues, self._with(at, at + 1, fresh))
        if len(rest) < CHUNK_MIN or len(chunks[to].entries) == CHUNK_MAX:
            return self._shrunk(at, rest, queues).joined(new, name, queues)
        target = chunks[to].entries
        position = _position(target, new)
        target = target[:position] + entry + target[position:]
        moved = list(chunks)
        moved[at] = Chunk(rest[0].standing, here & ~queues | _covered(queues, rest), rest)
        moved[to] = Chunk(target[0].standing, chunks[to].queues | queues, target)
        return Ranking(self.queues, tuple(moved))

    def _chunk_of(self, standing: Standing) -> int:
        """Return which chunk a standing is in, or belongs into."""
        in_flight, served = standing
        low, high = 1, len(self.chunks)
        while low < high:
            middle = (low + high) // 2
            first = self.chunks[middle].first
            if first[0] < in_flight or (first[0] == in_flight and first[1] <= served):
                low = middle + 1
            else:
                high = middle
        return low - 1

    def _with(self, start: int, end: int, *fresh: Chunk) -> tuple[Chunk, ...]:
        return (*self.chunks[:start], *fresh, *self.chunks[end:])

    def _shrunk(self, at: int, entries: tuple[Entry, ...], lost: Bits) -> "Ranking":
        """Put what is left of a chunk in its place. `lost`: where one of them stood who stands there no more."""
        chunks = self.chunks
        if len(entries) >= CHUNK_MIN or len(chunks) == 1:
            queues = chunks[at].queues & ~lost | _covered(lost, entries)
            chunks = self._with(at, at + 1, Chunk(entries[0].standing, queues, entries)) if entries else ()
        elif at + 1 < len(chunks):
            chunks = self._with(at, at + 2, *_halves(entries + chunks[at + 1].entries))
        else:
            chunks = self._with(at - 1, at + 1, *_halves(chunks[at - 1].entries + entries))
        return Ranking(self.queues & ~lost | _covered(lost, chunks), chunks)


def union(sets: Iterable[Bits]) -> Bits:
    """Return all queues of some sets of queues."""
    queues = 0
    for each in sets:
        queues |= each
    return queues


def _halves(entries: tuple[Entry, ...]) -> Iterator[Chunk]:
    """Yield entries as one chunk, or as two if they are too many."""
    half = len(entries) // 2 if len(entries) > CHUNK_MAX else len(entries)
    for part in (entries[:half], entries[half:]):
        if part:
            yield Chunk(part[0].standing, union(entry.queues for entry in part), part)


def _position(entries: tuple[Entry, ...], standing: Standing) -> int:
    """Return how many of some entries stand before a standing."""
    in_flight, served = standing
    low, high = 0, len(entries)
    while low < high:
        middle = (low + high) // 2
        other = entries[middle].standing
        if other[0] < in_flight or (other[0] == in_flight and other[1] < served):
            low = middle + 1
        else:
            high = middle
    return low


def _is_at(entries: tuple[Entry, ...], position: int, standing: Standing) -> bool:
    return position < len(entries) and entries[position].standing == standing


def _covered(wanted: Bits, holders: tuple[Entry, ...] | tuple[Chunk, ...]) -> Bits:
    """Return which of some queues any of the holders has: most often the first ones have them all."""
    missing = wanted
    for holder in holders:
        missing &= ~holder.queues
        if not missing:
            return wanted
    return wanted & ~missing
