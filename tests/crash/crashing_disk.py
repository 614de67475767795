"""A disk in memory that knows what would survive a loss of power, and that can stop dead before any of its steps.

What was written and not synced is in the page cache: a power loss keeps any part of it, a kill of the process all.
What was named and not synced is alike: a power loss may undo creations, renames and removals that no sync followed.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import BinaryIO

from luftpause.adapters.journal_file.disk import AppendFile, Held


class CrashError(BaseException):
    """The process is gone: nobody handles this."""


@dataclass(eq=False)
class Content:
    """One file: its bytes, and how many of them a power loss leaves for sure."""

    data: bytearray = field(default_factory=bytearray)
    synced: int = 0


@dataclass
class Disk:
    """Files by name, as they are seen and as they would be found again."""

    seen: dict[str, Content] = field(default_factory=dict)
    durable: dict[str, Content] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    crash_at: int | None = None
    fail: Callable[[str], None] = lambda _step: None

    def step(self, what: str) -> None:
        """Every call to the disk passes here before it does anything."""
        if self.crash_at is not None and len(self.steps) >= self.crash_at:
            raise CrashError
        self.fail(what)
        self.steps.append(what)

    def after_kill(self) -> "Disk":
        """What the next process finds: all that this one did."""
        return Disk({name: Content(bytearray(c.data), c.synced) for name, c in self.seen.items()}, dict(self.seen))

    def after_power_loss(self, chance: Random) -> "Disk":
        """What is found after a power loss: what was synced, and of the rest whatever `chance` leaves."""
        names = self.seen if chance.random() < 0.5 else self.durable
        found: dict[str, Content] = {}
        for name, content in names.items():
            length = chance.randint(content.synced, len(content.data))
            found[name] = Content(bytearray(content.data[:length]), length)
        return Disk(found, dict(found))


class MemoryFile:
    """See AppendFile."""

    def __init__(self, disk: Disk, name: str, content: Content) -> None:
        self._disk = disk
        self._name = name
        self._content = content

    def append(self, data: bytes) -> None:
        half = len(data) // 2
        self._disk.step(f"write {self._name}")
        self._content.data += data[:half]
        self._disk.step(f"write on {self._name}")
        self._content.data += data[half:]

    def sync(self) -> None:
        self._disk.step(f"sync {self._name}")
        self._content.synced = len(self._content.data)

    def size(self) -> int:
        return len(self._content.data)

    def cut(self, size: int) -> None:
        self._disk.step(f"cut {self._name}")
        del self._content.data[size:]
        self._content.synced = size

    def close(self) -> None:
        self._disk.step(f"close {self._name}")


class _Lock:
    def close(self) -> None:
        return


class MemoryFolder:
    """See Folder. Locks nothing: a process that crashed does not let go."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk

    def __str__(self) -> str:
        return "memory"

    def lock(self) -> Held:
        self.disk.step("lock")
        return _Lock()

    def names(self) -> list[str]:
        return sorted(self.disk.seen)

    def open(self, name: str) -> AppendFile:
        if name not in self.disk.seen:
            self.disk.step(f"create {name}")
            self.disk.seen[name] = Content()
            self.sync()
        return MemoryFile(self.disk, name, self.disk.seen[name])

    def read(self, name: str) -> BinaryIO:
        self.disk.step(f"read {name}")
        if name not in self.disk.seen:
            raise FileNotFoundError(name)
        return io.BytesIO(bytes(self.disk.seen[name].data))

    def replace(self, name: str, over: str) -> None:
        self.disk.step(f"rename {name}")
        self.disk.seen[over] = self.disk.seen.pop(name)

    def remove(self, name: str) -> None:
        if name in self.disk.seen:
            self.disk.step(f"remove {name}")
            del self.disk.seen[name]

    def sync(self) -> None:
        self.disk.step("sync folder")
        self.disk.durable = dict(self.disk.seen)
