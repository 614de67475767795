"""llama-server's slots as far as clients see them: what was computed in each, saved to files and read back.

The engine model shares prefixes among all requests, so a slot here is only a note of which conversation was last sent
to it; erasing one forgets the note. A file is as long as its tokens say, whatever is in it.
"""

import asyncio
import re
from pathlib import Path
from typing import Final

import msgspec

from luftpause.testkit.engine_model.prefix_tree import Chain
from luftpause.testkit.fake_engine.engine import Engine
from luftpause.testkit.fake_engine.exchange import RefusedError
from luftpause.testkit.fake_engine.settings import Settings, SlotAction

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}")


class SavedSlot(msgspec.Struct, frozen=True):
    """What a slot holds, as it stands in a file."""

    chain: list[tuple[str, int]]

    @property
    def tokens(self) -> int:
        """How many tokens it is."""
        return sum(tokens for _, tokens in self.chain)


class FileNamed(msgspec.Struct, frozen=True):
    """The body of a save or a restore."""

    filename: str


class Slots:
    """The slots of one engine. Without a folder it has none, as an engine that was not told where to save."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        self._settings = settings
        self._engine = engine
        self._held: dict[int, SavedSlot] = {}

    def listing(self) -> list[dict[str, object]]:
        """Return each slot as `GET /slots` tells of it.

        Raises:
            RefusedError: there are none.
        """
        self._folder()
        return [
            {"id": slot, "n_ctx": self._settings.figures.kv_tokens, "is_processing": False}
            for slot in range(self._settings.figures.max_running)
        ]

    def used(self, slot: int | None, chain: Chain) -> None:
        """Note what a request that was sent to a slot has left there."""
        if slot is not None and 0 <= slot < self._settings.figures.max_running:
            self._held[slot] = SavedSlot(list(chain))

    async def save(self, slot: int, name: str) -> dict[str, object]:
        """Write a slot to a file.

        Raises:
            RefusedError: it was told to fail, or the name is none.
        """
        path = await self._begin("save", name)
        held = self._held.get(slot, SavedSlot([]))
        written = msgspec.json.encode(held).ljust(held.tokens * self._settings.slot_bytes)
        await asyncio.to_thread(path.write_bytes, written)
        return {"id_slot": slot, "filename": name, "n_saved": held.tokens, "n_written": len(written)}

    async def restore(self, slot: int, name: str) -> dict[str, object]:
        """Read a slot from a file.

        Raises:
            RefusedError: it was told to fail, the name is none, or there is no such file.
        """
        path = await self._begin("restore", name)
        try:
            read = await asyncio.to_thread(path.read_bytes)
            held = msgspec.json.decode(read, type=SavedSlot)
        except (OSError, msgspec.DecodeError) as error:
            raise RefusedError(400, "Unable to restore slot", "invalid_request_error") from error
        if self._engine.take_back(held.chain):
            self.used(slot, held.chain)
        return {"id_slot": slot, "filename": name, "n_restored": held.tokens, "n_read": len(read)}

    def erase(self, slot: int) -> dict[str, object]:
        """Forget what is in a slot.

        Raises:
            RefusedError: there are no slots.
        """
        self._folder()
        held = self._held.pop(slot, SavedSlot([]))
        return {"id_slot": slot, "n_erased": held.tokens}

    async def _begin(self, action: SlotAction, name: str) -> Path:
        folder = self._folder()
        if not _NAME.fullmatch(name):
            raise RefusedError(400, "Invalid filename", "invalid_request_error")
        await asyncio.sleep(self._settings.slot_s)
        if action in self._settings.slot_fails:
            raise RefusedError(500, f"failing to {action}, as it was told", "server_error")
        return folder / name

    def _folder(self) -> Path:
        if self._settings.slot_save_path is None:
            raise RefusedError(501, "This server does not support slots action. Start it with `--slot-save-path`")
        return Path(self._settings.slot_save_path)
