"""Asking an engine once more without our cap on its answer: it may be that alone that it refused.

Some know the member by another name, and some refuse a prompt and a cap that are longer together than they can bear.
"""

from typing import Final

from luftpause.core.model.replicas import Placement
from luftpause.ports.engines import Exchange
from luftpause.services.dataplane.forwarding import CAPS, Asked, Forwarded, forward
from luftpause.services.dataplane.surroundings import Surroundings

REFUSED: Final = 400
"""What engines say to a member that they do not like."""


async def ask_uncapped(
    around: Surroundings, asked: Asked, placement: Placement, *, speaks: bool, turn: str
) -> tuple[Forwarded, Exchange]:
    """Send a request without a cap; return what was sent, and the answer. For the rest see `forward`.

    Raises:
        BadRequestError, EngineUnreachableError, EngineBrokeError: as when it was sent with one.
    """
    forwarded = forward(asked, placement, speaks=speaks, turn=turn, allowed=around.settings.edits - CAPS)
    return forwarded, await around.engines.send(placement.endpoint, forwarded.request)
