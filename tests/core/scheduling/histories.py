"""Random but repeatable histories of events, drawn from a seed."""

import hashlib
import random
import sys
from collections.abc import Iterator

from core.scheduling.builders import arrived, failed, finished, known_run, open_turn, probed, spec
from luftpause.core.model.ids import Instant, PeerId, ReplicaId, RunId, TurnId
from luftpause.core.scheduling.decide import decide
from luftpause.core.scheduling.events import (
    Event,
    PeerLost,
    PeerResynced,
    ReplicaAdded,
    ReplicaRemoved,
    RunEnded,
    TurnAbandoned,
    TurnsRenewed,
    WokeUp,
)
from luftpause.core.scheduling.state import Limits, empty_state


def history(seed: int, length: int) -> Iterator[tuple[Event, Instant]]:
    """Yield events with their instants: mostly traffic, now and then trouble."""
    dice = random.Random(seed)
    now = 0.0
    for name in "abcd":
        yield ReplicaAdded(spec=spec(name, "m", "n")), Instant(now)
    for _ in range(length):
        now += dice.choice([0.0, 0.01, 1.0, 30.0])
        yield _event(dice), Instant(now)


def _event(dice: random.Random) -> Event:
    turn = f"t{dice.randrange(60)}"
    run = f"r{dice.randrange(15)}"
    replica = dice.choice("abcd")
    peer = dice.choice("pq")
    roll = dice.random()
    if roll < 0.4:
        return arrived(
            turn, run, batch=dice.random() < 0.6, caller=dice.choice("xyz"), model=dice.choice("mn"), peer=peer
        )
    if roll < 0.6:
        return finished(turn, tools=dice.choice([(), (), ("look",), ("wiki__search", "look"), ("mcp__wiki__search",)]))
    if roll < 0.8:
        return probed(replica, dice.randrange(4), dice.randrange(3), healthy=dice.random() < 0.9)
    rare: list[Event] = [
        failed(turn),
        TurnAbandoned(turn=TurnId(turn)),
        TurnsRenewed(turns=tuple(TurnId(f"t{number}") for number in range(60))),
        RunEnded(run=RunId(run)),
        PeerLost(peer=PeerId(peer)),
        PeerResynced(
            peer=PeerId(peer), turns=(open_turn(turn, run, replica),), runs=(known_run(run, replica, tools=("look",)),)
        ),
        ReplicaRemoved(replica=ReplicaId(replica)),
        ReplicaAdded(spec=spec(replica, "m", "n")),
        WokeUp(),
    ]
    return dice.choice(rare)


def fingerprint(seed: int, length: int) -> str:
    """Return a digest of every order that a history leads to."""
    state = empty_state(Limits())
    digest = hashlib.sha256()
    for event, now in history(seed, length):
        decision = decide(state, event, now)
        state = decision.state
        digest.update(repr(decision.actions).encode())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.stdout.write(fingerprint(int(sys.argv[1]), int(sys.argv[2])))
