"""What is kept of how a request went on: counted, logged the first time, and told its client."""

import logging
from typing import Final

from luftpause.core.dialects.edits import named
from luftpause.core.model.replicas import Placement
from luftpause.ports.engines import Header
from luftpause.services.dataplane.forwarding import CHAT, Forwarded
from luftpause.services.dataplane.headers import LEFT_OUT_HEADER
from luftpause.services.dataplane.surroundings import Surroundings

_LOGGER: Final = logging.getLogger("luftpause.dataplane")


def note(
    around: Surroundings, dialect: str, placement: Placement, forwarded: Forwarded, status: int
) -> tuple[Header, ...]:
    """Remember what an answer's head shows beside itself, and return the headers that tell of it.

    Args:
        around: where it is kept.
        dialect: the client's, by name.
        placement: where the turn runs.
        forwarded: what its engine was sent.
        status: what that answered.
    """
    if forwarded.back is None and dialect != CHAT:
        around.spoken.answered(placement, dialect, status)
    if forwarded.edits and around.counts.edited(forwarded.edits):
        _LOGGER.info("request_edited", extra={"members": named(forwarded.edits), "replica": placement.replica})
    if not forwarded.left_out:
        return ()
    names = ", ".join(forwarded.left_out)
    if around.counts.left_out(forwarded.left_out):
        _LOGGER.info("tools_left_out", extra={"tools": names, "dialect": dialect})
    return ((LEFT_OUT_HEADER, names.encode()),)
