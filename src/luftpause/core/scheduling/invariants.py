"""What must hold in every state, proved by a scan: every index equals what it is an index of.

For tests, the simulator and validation; `decide` never scans. Knows the rules, but not how `draft` keeps them.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from luftpause.core.model.turns import ServiceClass
from luftpause.core.scheduling.admission import takes_turns
from luftpause.core.scheduling.affinity import away_from, candidates, choose, keeps_room, pool_of
from luftpause.core.scheduling.events import TurnArrived
from luftpause.core.scheduling.lineup import Candidate
from luftpause.core.scheduling.parts import SEEN_IN_ORDER, parts_of, seen_as
from luftpause.core.scheduling.places import Place, all_of
from luftpause.core.scheduling.ranking import CHUNK_MAX, CHUNK_MIN, Bits, Ranking, union
from luftpause.core.scheduling.residency.soundness import check_models
from luftpause.core.scheduling.residency.uses import model_of
from luftpause.core.scheduling.standings import Party, Payer, Standing
from luftpause.core.scheduling.state import LAPSED_MAX, Lane, Life, Part, Pool, Replica, Service, State
from luftpause.core.scheduling.tool_history import HISTORIES_MAX
from luftpause.core.scheduling.wheel import Wheel
from luftpause.core.scheduling.working_set.soundness import check_working_set

Key = TypeVar("Key", bound=Hashable)
Deadline = TypeVar("Deadline", bound=str | tuple[str, str])


def check(state: State) -> None:
    """Return if the state is sound.

    Raises:
        AssertionError: it is not; the message tells what differs from what.
    """
    _check_open_turns(state)
    _check_deadlines(state)
    _check_runs(state)
    _check_replicas(state)
    _check_lanes(state)
    _check_counts(state)
    _check_tools(state)
    _check_standings(state)
    _check_lineup(state)
    if state.limits.working_set is None:
        _check_work_is_conserved(state)
    check_models(state)
    check_working_set(state)


def _check_wheel(wheel: Wheel[Deadline]) -> None:
    scanned = {key: bucket for bucket, keys in wheel.buckets.items() for key in keys}
    _same("buckets of a wheel", dict(wheel.bucket_of), scanned)
    assert all(wheel.buckets.values()), f"empty bucket in {wheel.buckets}"
    first = min(wheel.buckets, default=None)
    assert first is None or (wheel.first is not None and wheel.first <= first), f"{wheel.first} comes after {first}"


def _check_open_turns(state: State) -> None:
    both = set(state.turns) & set(state.held)
    assert not both, f"in flight and held at once: {sorted(both)}"
    revived = set(state.lapsed) & (set(state.turns) | set(state.held))
    assert not revived, f"given up and open at once: {sorted(revived)}"
    assert len(state.lapsed) <= LAPSED_MAX, f"{len(state.lapsed)} turns that were given up are remembered"
    for name, lapsed in state.lapsed.items():
        assert not lapsed.in_run or lapsed.arrival.part in state.runs, f"{name} is in a run that nobody knows"


def _check_runs(state: State) -> None:
    turns: dict[Part, set[str]] = {}
    held: dict[Part, list[str]] = {}
    for turn in state.turns.values():
        if turn.in_run:
            turns.setdefault(turn.arrival.part, set()).add(turn.arrival.turn)
    for waiting in sorted(state.held.values(), key=lambda waiting: waiting.seq):
        if waiting.arrival.in_run:
            held.setdefault(waiting.arrival.part, []).append(waiting.arrival.turn)
    parts = [(run, model) for run, models in state.models_of.items() for model in models]
    assert all(state.models_of.values()), f"runs without a model: {state.models_of}"
    _same("parts of runs", sorted(parts), sorted(state.runs))
    for name, run in state.runs.items():
        _same("what a run is found by", name, run.part)
        assert len(set(run.turns)) == len(run.turns), f"{name} counts a turn twice: {run.turns}"
        _same(f"turns in flight of {name}", set(run.turns), turns.pop(name, set()))
        _same(f"held turns of {name}", list(run.held), held.pop(name, []))
    children: dict[str, set[Part]] = {}
    for name, run in state.runs.items():
        if run.parent is not None:
            children.setdefault(run.parent, set()).add(name)
    _same("children by parent", {parent: set(parts) for parent, parts in state.children.items()}, children)
    assert not turns, f"turns in flight of unknown runs: {turns}"
    assert not held, f"held turns of unknown runs: {held}"


def _check_deadlines(state: State) -> None:
    """Everything is looked at in time; looking too early, or once more after the end, is harmless."""
    _check_wheel(state.peer_deadlines)
    _check_wheel(state.run_deadlines)
    _check_wheel(state.replica_deadlines)
    for closed, replica in state.replicas.items():
        if replica.closed_until is not None:
            look_at = state.replica_deadlines.bucket_of.get(closed)
            opens = state.replica_deadlines.bucket(replica.closed_until)
            assert look_at is not None, f"nobody ever opens {closed}"
            assert look_at <= opens, f"{closed} opens in {opens}, and is looked at in {look_at}"
    for open_turn in (*state.turns.values(), *state.held.values()):
        peer, over_in = open_turn.arrival.peer, open_turn.over_in
        look_at = state.peer_deadlines.bucket_of.get(peer)
        assert look_at is not None, f"nobody ever looks at the turns of {peer}"
        assert look_at <= over_in, f"{peer} is looked at in {look_at}, {open_turn.arrival.turn} is over in {over_in}"
    for name, run in state.runs.items():
        if run.at_rest:
            look_at = state.run_deadlines.bucket_of.get(name)
            over = state.run_deadlines.bucket(run.rests_since + state.limits.run_idle_expiry_s)
            assert look_at is not None, f"nobody ever looks at {name}"
            assert look_at <= over, f"{name} is looked at in {look_at}, over in {over}"
    unknown = set(state.run_deadlines.bucket_of) - set(state.runs)
    assert not unknown, f"deadlines of unknown runs: {sorted(unknown)}"


def _check_replicas(state: State) -> None:
    in_flight = Counter(turn.replica for turn in state.turns.values())
    batch = Counter(turn.replica for turn in state.turns.values() if turn.arrival.service_class is ServiceClass.BATCH)
    returning = Counter(turn.replica for turn in state.turns.values() if turn.returning)
    homes = [keeps_room(state.replicas, run) for run in state.runs.values()]
    kept = Counter(home.replica for home in homes if home is not None)
    serving: dict[Service, list[tuple[int, str]]] = {}
    for name, replica in state.replicas.items():
        _same(f"in flight on {name}", replica.in_flight, in_flight.pop(name, 0))
        _same(f"batch in flight on {name}", replica.batch, batch[name])
        _same(f"turns on {name} whose first token batch waits for", replica.returning, returning[name])
        _same(f"room kept on {name}", replica.kept, kept[name])
        _check_window(replica)
        assert not replica.healthy or replica.declared, f"{name} is healthy but not declared"
        assert replica.healthy or replica.load is None, f"{name} is unhealthy but reports a load"
        assert replica.load is not None or not replica.foreign, f"{name} has foreign load and reports none"
        assert replica.foreign >= 0, f"foreign load of {replica.foreign} on {name}"
        assert replica.peak >= replica.in_flight, f"{name} has {replica.in_flight} in flight, {replica.peak} at most"
        if replica.declared and replica.spec is not None and not replica.draining:
            for model in set(replica.spec.models):
                serving.setdefault((replica.spec.kind, model), []).append((replica.order, name))
    assert not in_flight, f"turns in flight on unknown replicas: {in_flight}"
    well = [name for name in state.past if name in state.replicas and state.replicas[name].seen_healthy]
    assert not well, f"found healthy, and not told of their past: {sorted(well)}"
    expected = {service: tuple(name for _, name in sorted(names)) for service, names in serving.items()}
    _same("replicas by what they serve", dict(state.serving), expected)


def _check_window(replica: Replica) -> None:
    window = replica.window
    if window is None:
        return
    is_able = takes_turns(replica) or replica.draining
    assert is_able, f"{replica.replica} takes no turns and has a window"
    assert window.size >= 1, f"{replica.replica} may never take a turn again: {window}"
    if window.refused_at is None:
        assert replica.seen_healthy, f"{replica.replica} starts slowly and was never healthy before"
        assert not window.answered, f"a slow start grows with every answer: {window}"
    else:
        assert window.size <= window.refused_at, f"{replica.replica} bears what it refused, and is held back: {window}"
        assert 0 <= window.answered < window.size, f"{replica.replica} answered a windowful, and got no more: {window}"


def _check_lanes(state: State) -> None:
    lanes: dict[Pool, dict[Lane, list[Place]]] = {}
    for name, held in state.held.items():
        arrival = held.arrival
        assert name == arrival.turn, f"{arrival.turn} is held as {name}"
        run = state.runs[arrival.part] if arrival.in_run else None
        _same(f"pool of {name}", held.pool, pool_of(state.replicas, run, arrival))
        away = away_from(state.replicas, run, held.pool)
        # Who is away from a home that began another life since is away from nobody.
        told = None if _is_past(state, held.away_from) else held.away_from
        assert told == away, f"{name} is away from {away}, not from {held.away_from}"
        is_launched = model_of(state.residency, arrival.kind, arrival.model) is not None
        is_served = is_launched or (arrival.kind, arrival.model) in state.serving
        assert is_served, f"{name} is held for {arrival.model}, which nobody serves"
        lanes.setdefault(held.pool, {}).setdefault(held.lane, []).append(held.place)
    absent: dict[Life, dict[str, Place]] = {}
    for name, held in state.held.items():
        if held.away_from is not None:
            absent.setdefault(held.away_from, {})[name] = held.place
    _same("turns away from their home", {life: dict(places) for life, places in state.away.items()}, absent)
    expected = {pool: {lane: sorted(places) for lane, places in by_lane.items()} for pool, by_lane in lanes.items()}
    listed = {pool: {lane: [*all_of(each)] for lane, each in of_pool.items()} for pool, of_pool in state.lanes.items()}
    _same("lanes", listed, expected)
    chunks = [chunk for of_pool in state.lanes.values() for places in of_pool.values() for chunk in places]
    assert all(chunks), "a lane has a chunk with nobody in it"


def _is_past(state: State, life: Life | None) -> bool:
    home = None if life is None else state.replicas.get(life[0])
    return home is None or life is None or home.epoch != life[1]


def _check_counts(state: State) -> None:
    seen = [seen_as(parts_of(state, run)) for run in state.models_of]
    counts = {each: count for each, count in zip(SEEN_IN_ORDER, state.run_counts, strict=True) if count}
    _same_counts("runs by phase and class", counts, [each for each in seen if each is not None])


def _check_tools(state: State) -> None:
    tools = state.tools
    for name, run in state.runs.items():
        assert run.out_on is None or (run.paused and run.at_rest), f"{name} is out on {run.out_on}, and not paused"
    out = [(run.out_on, tools.step(run.ended_at)) for run in state.runs.values() if run.out_on is not None]
    counted = {(tool, step): count for tool, steps in tools.out.items() for step, count in steps.items()}
    _same_counts("runs out on each tool by the start of their pause", counted, out)
    assert all(tools.out.values()), f"nobody is out on one of {set(tools.out)}"
    assert len(tools.histories) <= HISTORIES_MAX, f"{len(tools.histories)} tools are remembered"


def _check_standings(state: State) -> None:
    flying = Counter(party for turn in state.turns.values() for party in _parties(turn.arrival))
    for model in state.residency.models.values():  # a load counts as a turn of whoever forced it
        flying.update(() if model.payer is None else (model.payer[0], model.payer))
    waiting = Counter(party for held in state.held.values() for party in _parties(held.arrival))
    standings = state.standings
    of, resting, by_service = standings.of, standings.resting, standings.clock is not None
    _same("turns by party", {party: each.flying for party, each in of.items() if each.flying}, dict(flying))
    _same("held turns by party", {party: each.waiting for party, each in of.items() if each.waiting}, dict(waiting))
    _same("parties with held turns", standings.waiting, len(waiting))
    assert by_service or all(each.standing[0] == each.flying for each in of.values()), f"turns count, not service: {of}"
    _same("parties with open turns", set(of), set(flying) | set(waiting))
    assert not set(of) & set(resting), f"they have open turns, and rest: {set(of) & set(resting)}"
    assert by_service or not any(count for count, _ in resting.values()), (
        f"they rest with turns in flight: {dict(resting)}"
    )
    assert waiting or not resting, f"nobody waits, and {set(resting)} are remembered"
    known = [*((party, each.standing) for party, each in of.items()), *resting.items()]
    assert all(seq < state.next_seq for _, (_, seq) in known), f"served in the future: {known}"
    places = Counter((party[0] if isinstance(party, tuple) else "", standing) for party, standing in known)
    assert all(count == 1 for count in places.values()), f"two share a standing: {known}"


def _check_lineup(state: State) -> None:
    bits, lineup = state.queue_bits, state.lineup
    _same("queues with a bit", set(bits), {held.queue for held in state.held.values()})
    assert all(bit.bit_count() == 1 for bit in bits.values()), f"not one bit: {dict(bits)}"
    assert len(set(bits.values())) == len(bits), f"two queues share a bit: {dict(bits)}"
    scanned: dict[Payer, Bits] = {}
    for held in state.held.values():
        scanned[held.payer] = scanned.get(held.payer, 0) | bits[held.queue]
    in_order = sorted(scanned, key=state.standings.of_payer)
    _same("who waits", list(lineup.in_order(-1)), [Candidate(*payer, scanned[payer]) for payer in in_order])
    of = state.standings.of
    _check_ranking(
        lineup.principals, {name: (of[name].standing, ranking.queues) for name, ranking in lineup.callers.items()}
    )
    for principal, ranking in lineup.callers.items():
        of_principal = {caller: queues for (payer, caller), queues in scanned.items() if payer == principal}
        _check_ranking(ranking, {name: (of[principal, name].standing, queues) for name, queues in of_principal.items()})


def _check_ranking(ranking: Ranking, expected: Mapping[Key, tuple[Standing, Bits]]) -> None:
    entries = [entry for chunk in ranking.chunks for entry in chunk.entries]
    _same("a list of who waits", {entry.name: (entry.standing, entry.queues) for entry in entries}, dict(expected))
    _same("the order of a list", entries, sorted(entries, key=lambda entry: entry.standing))
    _same("queues of a list", ranking.queues, union(entry.queues for entry in entries))
    for chunk in ranking.chunks:
        least = CHUNK_MIN if len(ranking.chunks) > 1 else 1
        assert least <= len(chunk.entries) <= CHUNK_MAX, f"a chunk of {len(chunk.entries)}"
        _same("first of a chunk", chunk.first, chunk.entries[0].standing)
        _same("queues of a chunk", chunk.queues, union(entry.queues for entry in chunk.entries))


def _parties(arrival: TurnArrived) -> tuple[Party, Party]:
    return arrival.principal, (arrival.principal, arrival.caller)


def _check_work_is_conserved(state: State) -> None:
    for name, held in state.held.items():
        among = candidates(state.replicas, state.serving, held.pool)
        chosen = choose(among, held.arrival.service_class, None)
        assert chosen is None, f"{name} is held although one of {[replica.replica for replica in among]} has room"


def _same_counts(what: str, index: Mapping[Key, int], scanned: Iterable[Key]) -> None:
    _same(what, dict(index), dict(Counter(scanned)))


def _same(what: str, index: object, scanned: object) -> None:
    assert index == scanned, f"{what}: the index says {index}, a scan says {scanned}"
