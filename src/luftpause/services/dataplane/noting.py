"""What is kept of how a request went on: counted, logged the first time, and told its client."""

import logging
from typing import Final

from luftpause.core.dialects.edits import named
from luftpause.core.model.ids import ReplicaId
from luftpause.ports.engines import Header
from luftpause.services.dataplane.counts import DoorCounts
from luftpause.services.dataplane.forwarding import Forwarded
from luftpause.services.dataplane.headers import LEFT_OUT_HEADER

_LOGGER: Final = logging.getLogger("luftpause.dataplane")


def note(counts: DoorCounts, forwarded: Forwarded, dialect: str, replica: ReplicaId) -> tuple[Header, ...]:
    """Count what was changed in a request and what was left out, and return the headers that tell of it."""
    if forwarded.edits and counts.edited(forwarded.edits):
        _LOGGER.info("request_edited", extra={"members": named(forwarded.edits), "replica": replica})
    if not forwarded.left_out:
        return ()
    names = ", ".join(forwarded.left_out)
    if counts.left_out(forwarded.left_out):
        _LOGGER.info("tools_left_out", extra={"tools": names, "dialect": dialect})
    return ((LEFT_OUT_HEADER, names.encode()),)
