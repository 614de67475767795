"""Logs in event style: a constant snake_case message and fields, one line for each event.

On a terminal a line is text for people, elsewhere a JSON object. Fields come from `extra={...}`. Values from outside
cannot forge a line or drive a terminal, and what is named like a secret is never written. What is worth logging is
decided by who calls.
"""

import json
import logging
import math
import os
import sys
import time
from collections.abc import Mapping
from typing import Literal, TextIO

from luftpause.telemetry.printable import printable

LEVELS = ("debug", "info", "warning", "error")
VALUE_CHARACTERS_MAX = 2000
"""A longer value is cut: a log line is no place for bodies."""
HIDDEN = "[hidden]"

Style = Literal["auto", "text", "json"]

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "color_message"}
_OURS = frozenset({"ts", "level", "logger", "event", "error"})
_SECRET_NAMES = ("authorization", "cookie", "password", "secret", "token", "api_key", "apikey")
_COLOURS = {logging.WARNING: "33", logging.ERROR: "31", logging.CRITICAL: "31"}


def configure(level: str, *, style: Style = "auto", always: Mapping[str, object] | None = None) -> None:
    """Send all logs to standard error. Calling it again replaces what it set up before.

    Args:
        level: one of LEVELS, for luftpause itself; libraries below it log warnings only, unless it is "debug".
        style: "auto" writes text on a terminal and JSON elsewhere.
        always: fields of every line, such as which of several processes wrote it; a record's own win.
    """
    handler = _StandardErrorHandler(style, always or {})
    root = logging.getLogger()
    for known in root.handlers[:]:
        if isinstance(known, _StandardErrorHandler):
            root.removeHandler(known)
    root.addHandler(handler)
    root.setLevel(logging.INFO if level == "debug" else max(logging.WARNING, _number(level)))
    logging.getLogger("luftpause").setLevel(_number(level))


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Return the fields of a record that came from `extra`, secrets hidden, long values cut."""
    fields: dict[str, object] = {}
    for name, value in record.__dict__.items():
        if name not in _STANDARD:
            fields[f"{name}_" if name in _OURS else name] = HIDDEN if _is_secret(name) else _bounded(value)
    return fields


class JsonFormatter(logging.Formatter):
    """One JSON object a line: ts (UTC), level, logger, event, the fields, and error with the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without its newline. ASCII only, so that no reader can stumble."""
        line: dict[str, object] = {
            "ts": _utc(record, "%Y-%m-%dT%H:%M:%S") + "Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": _cut(record.getMessage()),
            **fields_of(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextFormatter(logging.Formatter):
    """`12:01:02.345 info  luftpause.scheduler turn_admitted turn=t1 replica="a b"`; tracebacks below, indented."""

    def __init__(self, *, has_colour: bool) -> None:
        super().__init__()
        self._has_colour = has_colour

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without its newline."""
        level = f"{record.levelname.lower():<7}"
        if self._has_colour and record.levelno in _COLOURS:
            level = f"\x1b[{_COLOURS[record.levelno]}m{level}\x1b[0m"
        event = printable(_cut(record.getMessage()))
        fields = "".join(f" {printable(name)}={_as_text(value)}" for name, value in fields_of(record).items())
        line = f"{_utc(record, '%H:%M:%S')} {level} {record.name} {event}{fields}"
        if record.exc_info:
            # Indented, so that a newline in an error's own text cannot pose as a log line.
            line += "".join(f"\n  {printable(part)}" for part in self.formatException(record.exc_info).splitlines())
        return line


class _StandardErrorHandler(logging.StreamHandler[TextIO]):
    """Writes to whatever standard error is at that moment, as tests and daemons exchange it."""

    def __init__(self, style: Style, always: Mapping[str, object]) -> None:
        super().__init__(sys.stderr)
        self._always = always
        if style == "json" or (style == "auto" and not sys.stderr.isatty()):
            self.setFormatter(JsonFormatter())
        else:
            self.setFormatter(TextFormatter(has_colour=_wants_colour(os.environ)))

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        for name, value in self._always.items():
            record.__dict__.setdefault(name, value)
        self.stream = sys.stderr
        super().emit(record)


def _wants_colour(env: Mapping[str, str]) -> bool:
    return sys.stderr.isatty() and not env.get("NO_COLOR") and env.get("TERM") != "dumb"


def _number(level: str) -> int:
    return logging.getLevelNamesMapping()[level.upper()]


def _utc(record: logging.LogRecord, pattern: str) -> str:
    return f"{time.strftime(pattern, time.gmtime(record.created))}.{int(record.msecs):03d}"


def _is_secret(name: str) -> bool:
    return name.lower().replace("-", "_").endswith(_SECRET_NAMES)


def _bounded(value: object) -> object:
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= VALUE_CHARACTERS_MAX else text[:VALUE_CHARACTERS_MAX] + "…"


def _as_text(value: object) -> str:
    text = str(value)
    if text and text.isprintable() and not any(character in text for character in ' "='):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(escaped)}"'
