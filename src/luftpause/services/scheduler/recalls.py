"""Who takes turns back from their engines: each dataplane its own, while it is there."""

from luftpause.core.model.ids import PeerId, TurnId
from luftpause.ports.scheduler import Recall


class Recalls:
    """Orders by peer. One for a peer that is away is lost: its turn stays where it is until it ends."""

    def __init__(self) -> None:
        self._of: dict[PeerId, Recall] = {}

    def attend(self, peer: PeerId, recall: Recall) -> None:
        """Order a peer's turns back by this, in place of what it named before."""
        self._of[peer] = recall

    def leave(self, peer: PeerId) -> None:
        """Forget a peer; an unknown one changes nothing."""
        self._of.pop(peer, None)

    def order(self, peer: PeerId, turn: TurnId) -> None:
        """Order a turn back."""
        recall = self._of.get(peer)
        if recall is not None:
            recall(turn)
