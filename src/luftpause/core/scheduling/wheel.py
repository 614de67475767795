"""Deadlines of many things, in buckets of equal width, without a scan over the things.

A deadline is rounded up to the end of its bucket, so everything due in one bucket shares one wake-up. Whoever keeps a
key here may let its deadline move later and leave the key where it is: it takes the bucket out when that is due, and
puts back what is not due yet. Knows no clock.
"""

import math
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from immutables import Map

from luftpause.core.model.ids import Instant

EXPIRY_STEP_S_MIN, EXPIRY_STEP_S_MAX = 0.001, 1.0
"""Deadlines are rounded up to this much, or to a sixteenth of a short timeout: nobody needs them finer."""

LOOK_AHEAD: Final = 64
"""Of more buckets than this not all are looked at for the next one that is due."""

Key = TypeVar("Key", bound=str | tuple[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel(Generic[Key]):
    """A persistent set of keys, each in one bucket. Bucket `n` is due at `n * step_s`.

    Attributes:
        step_s: width of a bucket, seconds.
        buckets: the keys of each bucket.
        bucket_of: the inverse of `buckets`.
        first: no bucket comes before this one. It may be empty by now: then the wake-up finds nothing to do.
    """

    step_s: float
    buckets: Map[int, Map[Key, None]] = field(default_factory=Map[int, Map[Key, None]])
    bucket_of: Map[Key, int] = field(default_factory=Map[Key, int])
    first: int | None = None

    def bucket(self, deadline: float) -> int:
        """Return the bucket that a deadline belongs to."""
        return math.ceil(deadline / self.step_s)

    def is_due(self, bucket: int, now: Instant) -> bool:
        """Say whether a bucket would be taken out now."""
        return bucket * self.step_s <= now

    def put(self, key: Key, bucket: int) -> "Wheel[Key]":
        """Add a key, or move it when it is there already."""
        old = self.bucket_of.get(key)
        if old == bucket:
            return self
        buckets = self.buckets if old is None else _without(self.buckets, old, key)
        keys: Map[Key, None] = buckets.get(bucket) or Map()
        return Wheel(
            step_s=self.step_s,
            buckets=buckets.set(bucket, keys.set(key, None)),
            bucket_of=self.bucket_of.set(key, bucket),
            first=bucket if self.first is None else min(self.first, bucket),
        )

    def drop(self, key: Key) -> "Wheel[Key]":
        """Take a key out; an unknown one changes nothing."""
        bucket = self.bucket_of.get(key)
        if bucket is None:
            return self
        bucket_of = self.bucket_of.delete(key)
        return Wheel(
            step_s=self.step_s,
            buckets=_without(self.buckets, bucket, key),
            bucket_of=bucket_of,
            first=self.first if bucket_of else None,
        )

    def next_at(self) -> Instant | None:
        """Return when to look next, seconds; None when the wheel is empty. Never too late, at times too early."""
        return None if self.first is None else Instant(self.first * self.step_s)

    def take_due(self, now: Instant) -> tuple[tuple[Key, ...], "Wheel[Key]"]:
        """Take every key out whose bucket is due. Returns them in order of bucket and name, and the rest."""
        if self.first is None or not self.is_due(self.first, now):
            return (), self
        due = self._due(self.first, now)
        taken = tuple([key for bucket in due for key in sorted(self.buckets[bucket])])
        buckets, bucket_of = self.buckets, self.bucket_of
        for bucket in due:
            buckets = buckets.delete(bucket)
        for key in taken:
            bucket_of = bucket_of.delete(key)
        first = self._first_after(buckets, now)
        return taken, Wheel(step_s=self.step_s, buckets=buckets, bucket_of=bucket_of, first=first)

    def _due(self, first: int, now: Instant) -> list[int]:
        """Return the buckets that are due, in order: by a walk from the first, or a look at all if they are fewer."""
        if now / self.step_s - first > len(self.buckets):
            return sorted([bucket for bucket in self.buckets if self.is_due(bucket, now)])
        due: list[int] = []
        while self.is_due(first, now):
            if first in self.buckets:
                due.append(first)
            first += 1
        return due

    def _first_after(self, buckets: Map[int, Map[Key, None]], now: Instant) -> int | None:
        """Return the first of the buckets that are left; of many, where a short look ahead ends if it finds none."""
        if len(buckets) <= LOOK_AHEAD:
            return min(buckets, default=None)
        first = int(now / self.step_s)
        while self.is_due(first, now):
            first += 1
        end = first + LOOK_AHEAD
        while first < end and first not in buckets:
            first += 1
        return first


def expiry_step_s(timeout_s: float) -> float:
    """Return the width of the buckets for deadlines that are so far away, seconds."""
    return min(EXPIRY_STEP_S_MAX, max(EXPIRY_STEP_S_MIN, timeout_s / 16))


def _without(buckets: Map[int, Map[Key, None]], bucket: int, key: Key) -> Map[int, Map[Key, None]]:
    keys = buckets[bucket].delete(key)
    return buckets.set(bucket, keys) if keys else buckets.delete(bucket)
