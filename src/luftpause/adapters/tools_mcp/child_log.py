"""What a tool server writes beside its messages, in our log: line by line, cut, and no more than somebody reads."""

import asyncio
import logging
from typing import Final

LINES_PER_MINUTE_MAX: Final = 60
LINE_CHARS_MAX: Final = 500
_PARTIAL_MAX: Final = 4 * LINE_CHARS_MAX
_MINUTE_S: Final = 60.0
logger = logging.getLogger("luftpause.tools")


class ChildLog:
    """Takes what a child wrote, cut anywhere. Use it inside a running loop."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._partial = b""
        self._clock = asyncio.get_running_loop().time
        self._minute_began = self._clock()
        self._lines = 0
        self._left_out = 0
        self._last = ""

    @property
    def is_flooded(self) -> bool:
        """Whether more lines came within a minute than are logged."""
        return self._lines > LINES_PER_MINUTE_MAX

    def write(self, chunk: bytes) -> None:
        """Log the lines that are whole now."""
        *whole, rest = (self._partial + chunk).split(b"\n")
        # A line without an end must not grow without bound.
        self._partial = rest[:_PARTIAL_MAX]
        if self.is_flooded and whole:
            self._left_out += len(whole) - 1
            del whole[:-1]  # to look at each would cost more than all that comes of it
        for line in whole:
            self._take(line)

    def say(self, told: str) -> None:
        """Log something about the child."""
        logger.warning("tool_server_misbehaved", extra={"server": self._server, "error": told})

    def close(self, code: int | None) -> None:
        """Log the rest, and how the child ended."""
        self._take(self._partial)
        self._tell_left_out()
        logger.info("tool_server_ended", extra={"server": self._server, "code": code, "last_line": self._last})

    def _take(self, line: bytes) -> None:
        text = line[:_PARTIAL_MAX].decode("utf-8", "replace").rstrip()[:LINE_CHARS_MAX]
        text = "".join(char if char.isprintable() else "·" for char in text)
        if not text:
            return
        self._last = text
        if self._clock() - self._minute_began >= _MINUTE_S:
            self._tell_left_out()
            self._minute_began, self._lines = self._clock(), 0
        self._lines += 1
        if self._lines > LINES_PER_MINUTE_MAX:
            self._left_out += 1
        else:
            logger.info("tool_server_said", extra={"server": self._server, "line": text})

    def _tell_left_out(self) -> None:
        if self._left_out:
            logger.info("tool_server_lines_left_out", extra={"server": self._server, "lines": self._left_out})
            self._left_out = 0
