"""Golden scenarios: a file of commands, each followed by what the scheduler made of it, in words.

A command stands at the left edge, what happened indented below a blank line; where nothing follows, nothing happened.
`#` begins a comment. `replayed` returns the file as it would be now.
"""

from collections.abc import Callable

from core.scheduling.builders import World, arrived, failed, finished, known_run, open_turn, probed, spec
from luftpause.core.dialects.engine_metrics import parse_load
from luftpause.core.model.ids import PeerId, ReplicaId, RunId, TurnId
from luftpause.core.scheduling.actions import Action, ForgetRun, HoldTurn, PlaceTurn, RefuseTurn
from luftpause.core.scheduling.events import (
    Event,
    FirstTokenSeen,
    PeerLost,
    PeerResynced,
    ReplicaAdded,
    ReplicaProbed,
    ReplicaRemoved,
    RunEnded,
    RunPhase,
    TurnAbandoned,
    TurnsRenewed,
    WokeUp,
)
from luftpause.core.scheduling.reasons import explain
from luftpause.core.scheduling.view import view

Told = Callable[..., Event]


def replayed(text: str) -> str:
    """Carry the commands out and write down what happens."""
    world, lines = World(), list[str]()
    for line in text.splitlines():
        if line.startswith("#"):
            lines.append(line)
        elif line and not line.startswith(" "):
            happened = [f"  {words}" for words in carried_out(world, line)]
            lines += [line, "", *happened, ""] if happened else [line]
        elif not line and lines and lines[-1].startswith("#"):
            lines.append(line)
    return "\n".join(lines).rstrip() + "\n"


def carried_out(world: World, command: str) -> list[str]:
    """Carry one command out; return what happened, a line each."""
    verb, *words = command.split()
    if verb == "show":
        return shown(world)
    if verb == "later":
        world.later(float(words[0]))
        return [sentence(action) for action in world.tell(WokeUp())]
    plain = [word for word in words if "=" not in word]
    named = dict(word.split("=", 1) for word in words if "=" in word)
    return [sentence(action) for action in world.tell(COMMANDS[verb](*plain, **named))]


def sentence(action: Action) -> str:
    match action:
        case PlaceTurn(turn=turn, replica=replica, why=why, held_s=held_s):
            return f"{turn} goes to {replica}: {why.value}" + (f"; it waited {held_s:g} s" if held_s else "")
        case HoldTurn(turn=turn, why=reason):
            return f"{turn} waits: {explain(reason)}"
        case RefuseTurn(turn=turn, why=refusal):
            return f"{turn} is refused: {refusal.message}"
        case ForgetRun(run=run, why=why_forgotten):
            return f"{run} is forgotten: {why_forgotten}"


def shown(world: World) -> list[str]:
    """Return replicas, held turns and runs, a line each."""
    seen = view(world.state, world.now)
    return [
        *(
            f"{each.name} is {each.phase.value}: "
            f"{each.in_flight} of {each.capacity or 'any number'} in flight, {each.kept} kept"
            + (f", a window of {each.window.size}" if each.window else "")
            for each in seen.replicas
        ),
        *(
            f"{each.count} {each.service_class.value} of {each.caller}, {each.oldest_s:g} s: {explain(each.reason)}"
            for each in seen.held
        ),
        *(f"{each.count} {each.service_class.value} {each.phase.value}" for each in seen.runs),
        *(
            f"{each.server or 'a plain'} {each.tool}: {each.running} out, {each.returned} came back, half within "
            f"{each.p50_s:.1f} s, 90 % within {each.p90_s:.1f} s, expected in {each.expected_return_s:.1f} s"
            for each in seen.tools
        ),
    ]


def arrive(turn: str, *marks: str, run: str = "", caller: str = "anonymous", model: str = "m", age: str = "0") -> Event:
    return arrived(turn, run, batch="batch" in marks, caller=caller, model=model, age_s=float(age))


def finish(turn: str, tools: str = "0") -> Event:
    """`finish t tools=2` calls so many tools without a name, `finish t tools=look,wiki__search` these."""
    return finished(turn, tools=int(tools) if tools.isdigit() else tools.split(","))


def probe(name: str, *cause: str, running: str = "", waiting: str = "") -> Event:
    """`probe a` reports no load, `probe a running=2 waiting=1` one; any other words are why it is not healthy."""
    load = (int(running), int(waiting)) if running else (0, None)
    return probed(name, *load, healthy=not cause, cause=" ".join(cause))


def ranks(name: str, *loads: str) -> Event:
    """`ranks a 3/0 2/1`: vLLM's report with running and waiting of each data-parallel rank."""
    text = ""
    for rank, load in enumerate(loads):
        running, waiting = load.split("/")
        text += f'vllm:num_requests_running{{engine="{rank}"}} {running}\n'
        text += f'vllm:num_requests_waiting{{engine="{rank}"}} {waiting}\n'
    return ReplicaProbed(replica=ReplicaId(name), healthy=True, load=parse_load(text))


def resync(peer: str, *told: str) -> Event:
    """`resync p t1/r1/a r2/a/paused/60 r3/a/paused/9/look`: turns in flight as turn/run/replica, runs as
    run/replica/phase/age/tools.
    """
    parts = [word.split("/") for word in told]
    turns = tuple(open_turn(*part, batch=False) for part in parts if len(part) == 3)
    runs = tuple(
        known_run(run, replica, phase=RunPhase(phase), age_s=float(age), tools=tools)
        for run, replica, phase, age, *tools in (part for part in parts if len(part) > 3)
    )
    return PeerResynced(peer=PeerId(peer), turns=turns, runs=runs)


COMMANDS: dict[str, Told] = {
    "replica": lambda name, *models: ReplicaAdded(spec=spec(name, *models)),
    "remove": lambda name: ReplicaRemoved(replica=ReplicaId(name)),
    "probe": probe,
    "ranks": ranks,
    "arrive": arrive,
    "token": lambda turn: FirstTokenSeen(turn=TurnId(turn)),
    "finish": finish,
    "fail": lambda turn, retry_after="0": failed(turn, retry_after_s=float(retry_after)),
    "abandon": lambda turn: TurnAbandoned(turn=TurnId(turn)),
    "renew": lambda *turns: TurnsRenewed(turns=tuple(TurnId(turn) for turn in turns)),
    "end": lambda run: RunEnded(run=RunId(run)),
    "lose": lambda peer: PeerLost(peer=PeerId(peer)),
    "resync": resync,
}
