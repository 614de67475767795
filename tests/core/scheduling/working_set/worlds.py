"""Worlds with policy `working-set`, and short ways to say what has a size."""

from dataclasses import replace

from core.scheduling.builders import World, arrived, finished, probed, spec
from luftpause.core.model.ids import RunId, TurnId
from luftpause.core.model.replicas import Load
from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.events import FirstTokenSeen, ReplicaProbed, TurnArrived, TurnFinished
from luftpause.core.scheduling.state import Limits, Replica
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.state import Seat

REPLY = 200
"""What an answer is expected to take where nothing is known."""


def world(*names: str, kv: int | None = 10_000, limits: WorkingSetLimits | None = None) -> World:
    """Return a world whose replicas, `a` unless named, have so much memory."""
    made = World(
        *(spec(name) for name in names or ("a",)), limits=Limits(working_set=limits or WorkingSetLimits(fill=1.0))
    )
    for name in names or ("a",):
        made.tell(told(name, kv))
    return made


def told(name: str, kv: int | None, preemptions: int | None = None) -> ReplicaProbed:
    """Probe a replica whose engine tells of its memory."""
    load = Load(running=0, waiting=0, kv_tokens=kv, preemptions=preemptions)
    return replace(probed(name, 0, 0), load=load)


def sized(turn: str, tokens: int, run: str = "", *, batch: bool = True, caller: str = "anonymous") -> TurnArrived:
    """Offer a turn whose prompt is so long, at four bytes a token."""
    return replace(arrived(turn, run, batch=batch, caller=caller), prompt_bytes=4 * tokens)


def child(turn: str, parent: str, *, caller: str = "anonymous") -> TurnArrived:
    """Offer a batch turn of a run that another one began."""
    return replace(sized(turn, 1000, caller=caller), parent=RunId(parent))


def answered(turn: str, prompt: int, *, reply: int = 100, cached: int = 0, tool: str = "") -> TurnFinished:
    """End a turn with its usage, out on a tool if one is named."""
    usage = Usage(prompt_tokens=prompt, completion_tokens=reply, cached_tokens=cached)
    return replace(finished(turn, tools=[tool] if tool else 0), usage=usage)


def begun(turn: str) -> FirstTokenSeen:
    return FirstTokenSeen(turn=TurnId(turn))


def replica(in_world: World, name: str = "a") -> Replica:
    return in_world.state.replicas[spec(name).replica]


def seat(in_world: World, name: str = "a") -> Seat:
    return replica(in_world, name).seat
