"""The ready file: written once every service of the process answers, so that scripts need not sleep or poll ports."""

import json
import os
from collections.abc import Mapping
from pathlib import Path


def write_ready_file(path: Path, services: Mapping[str, str]) -> None:
    """Write service name to base URL, and this process's `pid`, as one JSON object. Readers see all of it or nothing.

    Raises:
        OSError: the file cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps({**services, "pid": os.getpid()}) + "\n", encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
