"""Golden scenarios: a file of commands, each followed by what the scheduler made of it, in words.

A command stands at the left edge, what happened indented below a blank line; where nothing follows, nothing happened.
`#` begins a comment. `replayed` returns the file as it would be now.
"""

from collections.abc import Callable
from dataclasses import replace

from core.scheduling.builders import World, arrived, failed, finished, known_run, open_turn, probed, spec
from core.scheduling.residency.words import GIB, down, engine, joined, load_failed, unload_asked, up
from core.scheduling.residency.words import model as model_spec
from core.scheduling.residency.words import saved as kv_file
from luftpause.core.dialects.engine_metrics import parse_load
from luftpause.core.model.charges import Charge
from luftpause.core.model.ids import LauncherId, ModelName, PeerId, ReplicaId, RunId, TurnId
from luftpause.core.model.models import EnginePhase, ModelGroup
from luftpause.core.model.replicas import EngineKind, Priorities
from luftpause.core.model.tool_names import A_PERSON
from luftpause.core.model.turns import Usage
from luftpause.core.scheduling.actions import Action, ForgetRun, HoldTurn, PlaceTurn, RecallTurn, RefuseTurn
from luftpause.core.scheduling.events import (
    AnswerGrew,
    Event,
    FirstTokenSeen,
    OpenTurn,
    PeerLost,
    PeerResynced,
    ReplicaAdded,
    ReplicaProbed,
    ReplicaRemoved,
    RunEnded,
    RunPhase,
    TurnAbandoned,
    TurnReturned,
    TurnsRenewed,
    TurnStays,
    WokeUp,
)
from luftpause.core.scheduling.reasons import explain
from luftpause.core.scheduling.residency.actions import DropKv, KvVerdict, LoadModel, UnloadModel
from luftpause.core.scheduling.residency.events import LauncherLost, LoadAsked, LoadProgressed, PinAsked
from luftpause.core.scheduling.residency.reasons import explain_unload
from luftpause.core.scheduling.residency.view import ModelView
from luftpause.core.scheduling.state import Limits
from luftpause.core.scheduling.view import view
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits

Told = Callable[..., Event]

GROUPS = {
    "one": ModelGroup(name="one", swap=True),
    "alone": ModelGroup(name="alone", swap=True, exclusive=True),
    "small": ModelGroup(name="small", persistent=True),
}


def replayed(text: str) -> str:
    """Carry the commands out and write down what happens."""
    world, lines = World(), list[str]()
    for line in text.splitlines():
        if line.startswith("#"):
            lines.append(line)
        elif line.startswith("policy "):
            world = World(limits=Limits(working_set=WorkingSetLimits(reply_caps="reply_caps" in line)))
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
            words = f"{turn} goes to {replica}: {why.value}" + (f"; it waited {held_s:g} s" if held_s else "")
            words += f"; slot {action.slot}" if action.slot is not None else ""
            words += f"; priority {action.priority}" if action.priority is not None else ""
            words += f"; {words_of(action.charge)}" if action.charge and words_of(action.charge) else ""
            return words + (f", KV {action.restore} first" if action.restore is not None else "")
        case HoldTurn(turn=turn, why=reason):
            return f"{turn} waits: {explain(reason)}"
        case RefuseTurn(turn=turn, why=refusal):
            return f"{turn} is refused: {refusal.message}".replace("\n", " | ")
        case RecallTurn(turn=turn, replica=replica, favours=favours, why=why_recalled):
            return f"{turn} is asked back from {replica} for {favours}: {why_recalled.value}"
        case ForgetRun(run=run, why=why_forgotten):
            return f"{run} is forgotten: {why_forgotten}"
        case LoadModel() | UnloadModel() | DropKv():
            return sentence_for_launcher(action)


def words_of(charge: Charge) -> str:
    """Return what a dataplane is told of a turn's answer."""
    spoken_of = f"told of when its answer has {charge.reply_bytes} bytes" if charge.reply_bytes else ""
    cap = f"at most {charge.reply_cap} tokens" if charge.reply_cap else ""
    return ", ".join(filter(None, (spoken_of, cap)))


def sentence_for_launcher(action: LoadModel | UnloadModel | DropKv) -> str:
    match action:
        case LoadModel(model=model, why=why_loaded, payer=payer):
            return f"load {model}: {why_loaded.value}" + (f", {payer[1]} pays" if payer else "")
        case UnloadModel(model=model, why=why_unloaded, firmly=firmly, kv=kv):
            words = f"unload {model}{' firmly' if firmly else ''}: {explain_unload(why_unloaded)}"
            return "; ".join([words, *map(kept, kv)])
        case DropKv(files=files, why=why_dropped):
            return f"delete KV {', '.join(map(str, files))}: {why_dropped.value}"


def kept(verdict: KvVerdict) -> str:
    saved = f"is saved as KV {verdict.file}" if verdict.file is not None else "is not saved"
    return f"slot {verdict.slot} of {verdict.run} {saved}: {verdict.why.value}"


def shown(world: World) -> list[str]:
    """Return replicas, held turns and runs, a line each."""
    seen = view(world.state, world.now)
    return [
        *(
            f"{each.name} is {each.phase.value}: "
            f"{each.in_flight} of {each.capacity or 'any number'} in flight, {each.kept} kept"
            + (f", a window of {each.window.size}" if each.window else "")
            + (f", {each.tokens.in_flight}+{each.tokens.kept} of {each.tokens.capacity} tokens" if each.tokens else "")
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
        *(shown_model(each) for each in seen.models),
    ]


def shown_model(seen: ModelView) -> str:
    """`A is up as box/A: 1 in flight, 2 waiting, 1 expected, 6 GiB`, and what else there is to say."""
    words = f"{seen.name} is {seen.phase.value}" + (f" as {seen.replica}" if seen.replica else "")
    words += f": {seen.in_flight} in flight, {seen.waiting} waiting, {seen.expected} expected"
    words += f", {seen.memory / GIB:g} GiB" + (" measured" if seen.is_measured else "")
    words += f", ready in {seen.eta_s:g} s" if seen.eta_s is not None else ""
    words += f", {seen.ttl_left_s:g} s to live" if seen.ttl_left_s is not None else ""
    words += f", {seen.slots} slots" if seen.slots else ""
    words += f", {seen.parked} parked in {seen.parked_size} bytes" if seen.parked else ""
    words += f", left alone for {seen.retry_after_s:g} s" if seen.retry_after_s is not None else ""
    return words + (f"; {seen.why}" if seen.why else "")


def arrive(
    turn: str,
    *marks: str,
    run: str = "",
    caller: str = "anonymous",
    model: str = "m",
    age: str = "0",
    parent: str = "",
    tokens: str = "0",
    recalls: str = "0",
    reply_max: str = "0",
) -> Event:
    """`tokens` are four bytes each; `reply_max=50`: its answer may have so many."""
    made = arrived(turn, run, batch="batch" in marks, caller=caller, model=model, age_s=float(age))
    known = RunId(parent) if parent else None
    told = replace(made, reply_max=int(reply_max), recalls=int(recalls))
    return replace(told, parent=known, prompt_bytes=4 * int(tokens))


def launcher(name: str, *told: str, ram: str = "10", parking: str = "0") -> Event:
    """`launcher box A/6 B/6/load:3/ttl:60 C/3/persistent ram=10 parking=1`: models with their GiB, engines that it has
    as `up:A` or `loading:A`, and GiB for files with KV.
    """
    specs, engines = [], []
    for word in told:
        if "/" in word:
            called, memory, *rest = word.split("/")
            figures = dict(each.split(":", 1) for each in rest if ":" in each)
            group = figures.get("group")
            specs.append(
                model_spec(
                    called,
                    float(memory),
                    *(each for each in rest if ":" not in each),
                    load=float(figures.get("load", 2)),
                    ttl=float(figures["ttl"]) if "ttl" in figures else None,
                    group=GROUPS[group] if group else None,
                    build=figures.get("build", ""),
                )
            )
        else:
            phase, called, *build = word.split(":")
            engines.append(engine(called, EnginePhase(phase), build="".join(build)))
    return joined(*specs, launcher=name, ram=float(ram), engines=tuple(engines), parking=int(float(parking) * GIB))


def finish(
    turn: str,
    *marks: str,
    tools: str = "0",
    tokens: str = "",
    cached: str = "",
    restore: str = "",
    prompt: str = "",
    reply: str = "100",
    **more: str,
) -> Event:
    """`finish t tools=2` calls so many tools without a name, `finish t tools=look,wiki__search` these; `finish t asks`
    one that a person must allow first.

    `tokens=900 cached=0`: of its prompt; `restore=0.1`: it had its KV read back first in so many seconds. With `prompt`
    the engine reports its reply's tokens too; `streamed=600`: it came in so many bytes; `cap=4096`: its engine was told
    by us that it may have so many tokens.
    """
    called: int | list[str] = int(tools) if tools.isdigit() else tools.split(",")
    made = finished(
        turn,
        tools=[A_PERSON] if "asks" in marks else called,
        tokens=int(tokens) if tokens else None,
        cached=int(cached) if cached else None,
        restore_s=float(restore) if restore else None,
    )
    if not prompt:
        return made
    usage = Usage(prompt_tokens=int(prompt), completion_tokens=int(reply), cached_tokens=int(cached or "0"))
    cap = int(more.get("cap", 0))
    finish = "length" if 0 < cap <= usage.completion_tokens else made.finish
    return replace(made, finish=finish, usage=usage, reply_bytes=int(more.get("streamed", 0)), reply_cap=cap)


def gone(name: str, *why: str, saved: str = "", prefill: str = "0") -> Event:
    """`down A saved=7/900/20000/0.1 prefill=0.001`: file, tokens, bytes and seconds of each save; what a token cost."""
    parts = [each.split("/") for each in saved.split(",") if each]
    kv = tuple(kv_file(int(file), int(tokens), int(size), float(took_s)) for file, tokens, size, took_s in parts)
    return down(name, " ".join(why), kv=kv, prefill_s=float(prefill))


def probe(name: str, *cause: str, running: str = "", waiting: str = "", kv: str = "", **more: str) -> Event:
    """`probe a` reports no load, `probe a running=2 waiting=1` one; any other words are why it is not healthy.

    `preempted=3`: so often its engine took memory back; `read=900`: tokens of prompts that it was given since it was
    started; `priorities=lower`: it takes them, and lower ones go first.
    """
    preempted, read, order = more.get("preempted", ""), more.get("read", ""), more.get("priorities")
    load = (int(running), int(waiting)) if running else (0, None)
    made = probed(name, *load, healthy=not cause, cause=" ".join(cause))
    made = replace(made, priorities=Priorities(f"{order} first") if order else None)
    if made.load is None:
        return made
    told = replace(
        made.load,
        kv_tokens=int(kv) if kv else None,
        preemptions=int(preempted) if preempted else None,
        prompt_tokens=int(read) if read else None,
    )
    return replace(made, load=told)


def ranks(name: str, *loads: str) -> Event:
    """`ranks a 3/0 2/1`: vLLM's report with running and waiting of each data-parallel rank, and its blocks of KV."""
    text = ""
    for rank, load in enumerate(loads):
        running, waiting, *blocks = load.split("/")
        for count in blocks:
            text += f'vllm:cache_config_info{{engine="{rank}",block_size="16",num_gpu_blocks="{count}"}} 1\n'
        text += f'vllm:num_requests_running{{engine="{rank}"}} {running}\n'
        text += f'vllm:num_requests_waiting{{engine="{rank}"}} {waiting}\n'
    return ReplicaProbed(replica=ReplicaId(name), healthy=True, load=parse_load(text))


def resync(peer: str, *told: str) -> Event:
    """`resync p t1/r1/a r2/a/paused/60 r3/a/paused/9/look`: turns in flight as turn/run/replica, runs as
    run/replica/phase/age/tools. `t1/r1/a:1000+500@100000`: charged so for prompt and answer, which is spoken of then.
    """
    parts = [word.split("/") for word in told]
    turns = tuple(charged_turn(*part) for part in parts if len(part) == 3)
    runs = tuple(
        known_run(run, replica, phase=RunPhase(phase), age_s=float(age), tools=tools)
        for run, replica, phase, age, *tools in (part for part in parts if len(part) > 3)
    )
    return PeerResynced(peer=PeerId(peer), turns=turns, runs=runs)


def charged_turn(turn: str, run: str, where: str) -> OpenTurn:
    replica, _, charge = where.partition(":")
    prompt, _, reply = charge.partition("+")
    tokens, _, reply_bytes = reply.partition("@")
    told = Charge(prompt=int(prompt), reply=int(tokens), reply_bytes=int(reply_bytes)) if charge else None
    return replace(open_turn(turn, run, replica, batch=False), charge=told)


COMMANDS: dict[str, Told] = {
    "replica": lambda name, *models, engine="auto": ReplicaAdded(spec=spec(name, *models, engine=EngineKind(engine))),
    "remove": lambda name: ReplicaRemoved(replica=ReplicaId(name)),
    "probe": probe,
    "ranks": ranks,
    "arrive": arrive,
    "grow": lambda turn, reply_bytes: AnswerGrew(turn=TurnId(turn), reply_bytes=int(reply_bytes)),
    "token": lambda turn: FirstTokenSeen(turn=TurnId(turn)),
    "finish": finish,
    "fail": lambda turn, retry_after="0": failed(turn, retry_after_s=float(retry_after)),
    "abandon": lambda turn: TurnAbandoned(turn=TurnId(turn)),
    "return": lambda turn: TurnReturned(turn=TurnId(turn)),
    "stay": lambda turn: TurnStays(turn=TurnId(turn)),
    "renew": lambda *turns: TurnsRenewed(turns=tuple(TurnId(turn) for turn in turns)),
    "end": lambda run: RunEnded(run=RunId(run)),
    "lose": lambda peer: PeerLost(peer=PeerId(peer)),
    "resync": resync,
    "launcher": launcher,
    "lost": lambda name: LauncherLost(launcher=LauncherId(name)),
    "progress": lambda name, share: LoadProgressed(model=ModelName(name), fraction=float(share)),
    "up": lambda name, memory="0", slots="0": up(name, float(memory), slots=int(slots)),
    "down": gone,
    "broken": lambda name, *tail, oom="": load_failed(name, "exit status 1", *tail, oom=bool(oom)),
    "load": lambda name: LoadAsked(model=ModelName(name)),
    "unload": lambda name, *how: unload_asked(name, firmly="firmly" in how, keep="keep" in how),
    "pin": lambda name, how="on": PinAsked(model=ModelName(name), on=how == "on"),
}
