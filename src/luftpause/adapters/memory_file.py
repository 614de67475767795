"""The file in which a scheduler leaves the next one what must outlive it: its peers, and what it learned.

The first line names the format and a sum over the rest, which is one JSON value. The file is replaced as a whole, so
what is there was written to its end; one that is torn all the same, or of another format, is as good as none.
"""

import contextlib
import logging
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from luftpause.core.model.ids import PeerId
from luftpause.core.scheduling.events import MemoryRestored

FORMAT: Final = 1
FILE_NAME: Final = "scheduler.memory"
BYTES_MAX: Final = 16 * 1024 * 1024
"""Several times what a scheduler writes that remembers as much as it may."""

_HEAD: Final = b"luftpause scheduler memory %d %08x\n"

_log = logging.getLogger("luftpause.scheduler")


class Memory(msgspec.Struct, frozen=True):
    """All that is kept."""

    peers: tuple[PeerId, ...] = ()
    learned: MemoryRestored = MemoryRestored()


class MemoryFile:
    """One file in a folder that is made when it is needed. Only who runs the scheduler may read it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / FILE_NAME

    def read(self) -> Memory:
        """Return what was kept; nothing when there is no file, or none that can be believed, which is logged."""
        try:
            with self._path.open("rb") as file:
                text = file.read(BYTES_MAX + 1)
        except FileNotFoundError:
            return Memory()
        except OSError as error:
            return self._ignored(str(error))
        head, _, body = text.partition(b"\n")
        if len(text) > BYTES_MAX or head + b"\n" != _HEAD % (FORMAT, zlib.crc32(body)):
            return self._ignored(f"it is torn, or of another format than {FORMAT}")
        try:
            return _MEMORIES.decode(body)
        except msgspec.DecodeError as error:
            return self._ignored(str(error))

    def write(self, peers: Sequence[PeerId], learned: MemoryRestored) -> None:
        """Replace what was kept before, as a whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        body = _ENCODER.encode(Memory(tuple(peers), learned))
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self._path.with_name(f"{FILE_NAME}.{os.getpid()}.new")
        try:
            with os.fdopen(os.open(beside, _FLAGS, 0o600), "wb") as file:
                file.write(_HEAD % (FORMAT, zlib.crc32(body)) + body)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise

    def _ignored(self, cause: str) -> Memory:
        _log.warning("memory_ignored", extra={"file": str(self._path), "cause": cause})
        return Memory()


_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_ENCODER: Final = msgspec.json.Encoder()
_MEMORIES: Final = msgspec.json.Decoder(Memory)
