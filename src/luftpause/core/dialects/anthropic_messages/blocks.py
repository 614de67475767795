"""Content blocks of an answer, one after the other, from pieces that may come in any order.

Messages knows one open block at a time, while Chat Completions may mix the arguments of several calls. So blocks queue:
the first is open and goes out as it comes, the others are held until it is over. A text is over when something else
begins; a call is over when its arguments are a whole JSON document and something else began.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

HELD_CHARS_MAX: Final = 8 * 1024 * 1024
"""More than this is not held back, nor kept of one call's arguments."""


class TooMuchError(Exception):
    """An answer holds more than is kept of it."""


class BlockSink(Protocol):
    """Where blocks go: each is opened, told of, closed, and only then the next is opened."""

    def open(self, kind: str, call_id: str, name: str) -> None:
        """Begin a block: `text`, `thinking` or `tool_use`."""
        ...

    def add(self, kind: str, text: str) -> None:
        """Add to the open block."""
        ...

    def close(self) -> None:
        """End the open block."""
        ...


@dataclass(slots=True)
class _Block:
    kind: str
    call: int = -1
    call_id: str = ""
    name: str = ""
    opened: bool = False
    held: list[str] = field(default_factory=list[str])
    arguments: list[str] = field(default_factory=list[str])


class BlockQueue:
    """Puts pieces into blocks."""

    __slots__ = ("_blocks", "_sink", "_size")

    def __init__(self, sink: BlockSink) -> None:
        self._sink = sink
        self._blocks: deque[_Block] = deque()
        self._size = 0

    def say(self, kind: str, text: str) -> None:
        """Add text or thinking.

        Raises:
            TooMuchError: it would have to be held, and too much is.
        """
        if not self._blocks or self._blocks[-1].kind != kind:
            self._blocks.append(_Block(kind))
        self._put(self._blocks[-1], text)

    def begin_call(self, call: int, call_id: str, name: str) -> None:
        """Add a call."""
        self._blocks.append(_Block("tool_use", call, call_id, name))
        self._go_on()

    def add_arguments(self, call: int, text: str) -> None:
        """Add to the arguments of a call. To one whose arguments were whole before, nothing can be added.

        Raises:
            TooMuchError: there are too many of them.
        """
        block = next((block for block in self._blocks if block.call == call), None)
        if block is not None:
            self._count(text)
            block.arguments.append(text)
            self._put(block, text)

    def end(self) -> None:
        """Let everything out: nothing more will come."""
        while self._blocks:
            self._let_out(self._blocks[0])
            self._close_first()

    def _put(self, block: _Block, text: str) -> None:
        if block.opened:
            self._sink.add(block.kind, text)
        else:
            self._count(text)
            block.held.append(text)
        if not block.opened or len(self._blocks) > 1:
            self._go_on()

    def _count(self, text: str) -> None:
        self._size += len(text)
        if self._size > HELD_CHARS_MAX:
            raise TooMuchError

    def _go_on(self) -> None:
        """Open the first block, and go to the next as long as the first is over."""
        self._let_out(self._blocks[0])
        while len(self._blocks) > 1 and _is_over(self._blocks[0]):
            self._close_first()
            self._let_out(self._blocks[0])

    def _let_out(self, block: _Block) -> None:
        if not block.opened:
            self._sink.open(block.kind, block.call_id, block.name)
            block.opened = True
        for text in block.held:
            self._sink.add(block.kind, text)
        self._size -= sum(map(len, block.held))
        block.held.clear()

    def _close_first(self) -> None:
        block = self._blocks.popleft()
        self._size -= sum(map(len, block.arguments))
        self._sink.close()


def _is_over(block: _Block) -> bool:
    if block.kind != "tool_use":
        return True
    if not block.arguments or not block.arguments[-1].rstrip().endswith("}"):
        return False
    try:
        msgspec.json.decode("".join(block.arguments))
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
