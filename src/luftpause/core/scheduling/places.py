"""Held turns in their order, in short chunks: one that comes or goes copies its chunk and the list of chunks, no more.

One caller may have ten thousand turns in one lane.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from typing import Final, TypeAlias

from luftpause.core.model.ids import TurnId

Place: TypeAlias = tuple[float, int, TurnId]
"""A held turn's place in its lane: when it counts as arrived, sequence number, turn."""

Places: TypeAlias = tuple[tuple[Place, ...], ...]
"""Chunks, none of them empty."""

CHUNK_MAX: Final = 128
"""A longer chunk is cut in two."""

NOWHERE: Final[Places] = ()
_FIRST: Final = itemgetter(0)


def inserted(places: Places, place: Place) -> Places:
    """Return places with one more."""
    if not places:
        return ((place,),)
    at = max(0, _after(places, place) - 1)
    chunk = places[at]
    position = bisect_left(chunk, place)
    chunk = (*chunk[:position], place, *chunk[position:])
    if len(chunk) <= CHUNK_MAX:
        return (*places[:at], chunk, *places[at + 1 :])
    half = len(chunk) // 2
    return (*places[:at], chunk[:half], chunk[half:], *places[at + 1 :])


def taken_out(places: Places, place: Place) -> Places:
    """Return places without one of them."""
    at = _after(places, place) - 1
    chunk = places[at]
    position = chunk.index(place)
    chunk = chunk[:position] + chunk[position + 1 :]
    return (*places[:at], chunk, *places[at + 1 :]) if chunk else places[:at] + places[at + 1 :]


def first_of(places: Places) -> Place:
    """Return the first of some places."""
    return places[0][0]


def all_of(places: Places) -> Iterator[Place]:
    """Yield all places in order."""
    return chain.from_iterable(places)


def number_of(places: Places) -> int:
    """Return how many there are."""
    return sum([len(chunk) for chunk in places])


def _after(places: Places, place: Place) -> int:
    """Return how many chunks begin at a place or before it."""
    return bisect_right(places, place, key=_FIRST)
