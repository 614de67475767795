"""The KV of a run that is kept in a file while its model is down, as scheduler, launcher and dataplane speak of it."""

from dataclasses import dataclass

from luftpause.core.model.ids import KvFile


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedKv:
    """A file that a launcher has.

    Attributes:
        tokens: whose KV is in it.
        size: bytes.
        took_s: how long its engine took to write it, seconds.
    """

    file: KvFile
    tokens: int
    size: int
    took_s: float = 0.0


def kv_file_name(file: KvFile) -> str:
    """Return what a file is called in its launcher's folder. A number of ours: nothing in it comes from outside."""
    return f"run-{file}.kv"
