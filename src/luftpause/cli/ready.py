"""The ready file: there while every service of the process answers, so that scripts need not sleep or poll ports."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from luftpause.cli.failures import CommandFailedError

Announce = Callable[[Mapping[str, str]], None]
"""Takes service name to base URL."""


@contextmanager
def ready_file(path: Path | None) -> Iterator[Announce]:
    """Yield what announces the services, and take the file away at the end; with no path nothing is written.

    A file that an earlier process left is gone before anything starts: who waits for it must not read the old one.
    The file holds one JSON object, the services and this process's `pid`. Readers see all of it or nothing.

    Raises:
        CommandFailedError: the file cannot be written there; said at once, before anything has started.
    """
    if path is None:
        yield lambda _: None
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}")

    def announce(services: Mapping[str, str]) -> None:
        draft.write_text(json.dumps({**services, "pid": os.getpid()}) + "\n", encoding="utf-8")
        draft.replace(path)

    try:
        path.unlink(missing_ok=True)
        draft.touch()
    except OSError as error:
        raise CommandFailedError(f"--ready-file: cannot write {path}: {error.strerror or error}") from error
    try:
        yield announce
    finally:
        draft.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
