"""What turns and runs are booked with under policy `working-set`, at each step of a turn's life."""

from typing import Final

from immutables import Map

from luftpause.core.model.charges import Charge
from luftpause.core.model.ids import Instant, ModelName, ReplicaId, ToolName
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.model.tool_names import A_PERSON
from luftpause.core.model.turns import TurnShape, Usage
from luftpause.core.scheduling.affinity import bound_to
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.events import TurnArrived, TurnFinished
from luftpause.core.scheduling.known import known
from luftpause.core.scheduling.reasons import PlacedBecause
from luftpause.core.scheduling.standings import Change
from luftpause.core.scheduling.state import Run, Turn
from luftpause.core.scheduling.working_set.askers import Asked, come_back, gone_idle, patience_s
from luftpause.core.scheduling.working_set.guests import has_little
from luftpause.core.scheduling.working_set.keeping import found_out, is_stale, speed_of, worth_s, worth_step
from luftpause.core.scheduling.working_set.learning import after_usage as seat_after
from luftpause.core.scheduling.working_set.leases import lease
from luftpause.core.scheduling.working_set.lengths import after_answer, makes_sense, measured, prompt_tokens, service_of
from luftpause.core.scheduling.working_set.lengths import after_usage as lengths_after
from luftpause.core.scheduling.working_set.limits import WorkingSetLimits
from luftpause.core.scheduling.working_set.replies import (
    AGENTS_MAX,
    Agent,
    Replies,
    after_cut,
    after_reply,
    agent_of,
    cap_of,
    is_cut,
)
from luftpause.core.scheduling.working_set.room import first_tokens_due, is_too_large
from luftpause.core.scheduling.working_set.seats import heard
from luftpause.core.scheduling.working_set.state import Lengths, Patience, Seat
from luftpause.core.scheduling.working_set.weights import Weights

FOREVER_S: Final = 1e9
SILENCE_S: Final = 2.0
"""So much later than expected a first token may be."""
HALF: Final = 0.5
PATIENCE_MAX: Final = 2048
NO_REPLIES: Final = Replies()
NO_TOOL: Final = ToolName("")


def need_of(draft: Draft, arrival: TurnArrived, run: Run | None) -> int:
    """Return the tokens that a turn is charged with where it goes; 0 where it uses no memory to speak of."""
    if not _uses_memory(draft, arrival):
        return 0
    return _needed(draft, arrival, run, _reply_of(draft, arrival, _replies_of(draft, arrival)))


def _uses_memory(draft: Draft, arrival: TurnArrived) -> bool:
    if draft.limits.working_set is None or arrival.kind is not ReplicaKind.GENERATIVE:
        return False
    return arrival.shape is not TurnShape.ERRAND


def _needed(draft: Draft, arrival: TurnArrived, run: Run | None, reply: int) -> int:
    return max(1, prompt_tokens(_lengths_of(draft, arrival.model), run, arrival) + reply)


def _lengths_of(draft: Draft, model: ModelName) -> Lengths:
    found = known(draft.working_set.lengths, model)
    return _LENGTHS if found is None else found


def _replies_of(draft: Draft, arrival: TurnArrived) -> Replies:
    """Return what is known of the answers of whoever asks for one."""
    limits = draft.limits.working_set
    if limits is None or not limits.agent_replies:
        return NO_REPLIES
    found = known(draft.working_set.replies, agent_of(arrival))
    return NO_REPLIES if found is None else found


def _reply_of(draft: Draft, arrival: TurnArrived, replies: Replies) -> int:
    """Return the tokens that a turn's answer is charged with."""
    expected = replies.long
    if not expected:
        expected = int(_lengths_of(draft, arrival.model).reply)
    return min(expected, arrival.reply_max) if arrival.reply_max > 0 else expected


def _charge_of(arrival: TurnArrived, prompt: int, reply: int, replies: Replies, limits: WorkingSetLimits) -> Charge:
    """Return the charge of a turn with so many tokens, and when its answer is to be spoken of."""
    reply_max = arrival.reply_max
    cap = cap_of(replies) if limits.reply_caps and reply_max <= 0 else 0
    reply_bytes = (
        int(reply * replies.token_bytes) if limits.corrections and (reply_max <= 0 or reply < reply_max) else 0
    )
    return Charge(prompt=prompt, reply=reply, reply_bytes=reply_bytes, reply_cap=cap)


def is_guest(draft: Draft, arrival: TurnArrived, need: int) -> bool:
    """Say whether a turn that is about to begin is one of a payer that has little beside the others."""
    limits = draft.limits.working_set
    if limits is None or not limits.guests or not need:
        return False
    return has_little(draft.standings, draft.lineup, (arrival.principal, arrival.caller), need, limits.weights)


def booked(draft: Draft, turn: Turn, run: Run | None, now: Instant, *, waited: bool) -> Turn:
    """Return a turn that is about to be placed, with what its replica is charged for it. `waited`: it was held."""
    expects = 0
    home = None if run is None or not run.kept else bound_to(draft.replicas, run)
    if home is not None and run is not None and home.replica == turn.replica:
        overfilled_at = home.seat.overfilled_at
        expects = run.measure.context if overfilled_at is None or overfilled_at < run.ended_at else 0
    replica = draft.replicas[turn.replica]
    limits, uses_memory = draft.limits.working_set, _uses_memory(draft, turn.arrival)
    replies = _replies_of(draft, turn.arrival)
    reply = _reply_of(draft, turn.arrival, replies) if uses_memory else 0
    tokens = _needed(draft, turn.arrival, run, reply) if uses_memory else 0
    why = turn.why
    if is_too_large(tokens, replica):
        tokens = max(1, int(replica.seat.turn))  # its engine refuses it, or what it is full of is no text
        why = _TOO_LARGE
    elif why is _LEAST_LOADED:
        why = PlacedBecause.ROOM_CAME if waited else PlacedBecause.READ_SOONEST
    elif why is _HOME_LOST and run is not None and run.loose:
        why = PlacedBecause.PLACE_LAPSED
    if not uses_memory or limits is None:
        return turn._replace(why=why, expects=expects, placed_at=now)
    prompt = max(0, tokens - reply)
    is_sized = why is not _TOO_LARGE
    return turn._replace(
        why=why,
        tokens=tokens,
        service=service_of(prompt, expects, reply),
        expects=expects,
        placed_at=now,
        late_at=_late_at(draft, turn, max(0, prompt - expects), now),
        charge=_charge_of(turn.arrival, prompt, reply, replies, limits) if is_sized else None,
    )


def _late_at(draft: Draft, turn: Turn, prefill: int, now: Instant) -> Instant:
    replica = draft.replicas[turn.replica]
    awaited = sum([each.tokens for each in replica.seat.awaiting])
    prefill_s = (awaited + prefill) / speed_of(replica)
    streamed = _lengths_of(draft, turn.arrival.model).streamed
    return Instant(now + (SILENCE_S + 2 * prefill_s if streamed >= HALF else prefill_s))


def watch(draft: Draft, name: ReplicaId) -> None:
    """Look at a replica again that awaits as many first tokens as it may."""
    limits, silences = draft.limits.working_set, draft.working_set.silences
    replica = draft.replicas[name]
    if limits is None or name in silences.bucket_of or not first_tokens_due(replica, limits):
        return
    bucket = silences.bucket(min(each.until for each in replica.seat.awaiting))
    draft.working_set = draft.working_set._replace(silences=silences.put(name, bucket))


def break_silences(draft: Draft, now: Instant) -> None:
    """Take turns for under way that should be by now: an answer that is not streamed tells of no first token."""
    names, silences = draft.working_set.silences.take_due(now)
    if silences is draft.working_set.silences:
        return
    draft.working_set = draft.working_set._replace(silences=silences)
    for name in names:
        replica = draft.replicas.get(name)
        if replica is None:
            continue
        awaiting = tuple(
            each for each in replica.seat.awaiting if not silences.is_due(silences.bucket(each.until), now)
        )
        if awaiting != replica.seat.awaiting:
            draft.set_replica(replica._replace(seat=replica.seat._replace(awaiting=awaiting)))
        watch(draft, name)


def note_first_token(draft: Draft, turn: Turn, now: Instant) -> None:
    """Let a turn wait for its first token no longer; that is a sign of life, too."""
    heard_of = turn._replace(first_s=now - turn.placed_at, over_in=draft.turn_bucket(now))
    draft.turns = draft.turns.set(turn.arrival.turn, heard_of)
    replica = draft.replicas[turn.replica]
    draft.set_replica(replica._replace(seat=heard(replica.seat, turn.arrival.turn)))


def learn(draft: Draft, turn: Turn, finished: TurnFinished, now: Instant) -> tuple[Seat | None, Change]:
    """Learn from a turn that its engine answered whole, before it is discharged.

    Returns its replica's seat with what that taught, None where it taught nothing; and by how much its payer was served
    more, or less, than was thought.
    """
    limits, usage = draft.limits.working_set, finished.usage
    if limits is None or not turn.tokens or usage is None or not makes_sense(usage):
        return None, (0, 0)
    arrival = turn.arrival
    lengths = lengths_after(_lengths_of(draft, arrival.model), arrival, usage)
    lengths = after_answer(lengths, usage, turn.first_s, now - turn.placed_at)
    working_set = draft.working_set
    draft.working_set = working_set._replace(
        lengths=working_set.lengths.set(arrival.model, lengths),
        replies=_with_reply(working_set.replies, arrival, finished, usage),
    )
    replica = draft.replicas[turn.replica]
    change = _change(turn, usage, limits.weights) if limits.by_service else (0, 0)
    if turn.seq < replica.epoch:
        turn = turn._replace(expects=0)  # its place was in a cache that is gone
    return seat_after(replica.seat, turn, usage, now, learns=limits.learn), change


def _with_reply(
    replies: Map[Agent, Replies], arrival: TurnArrived, finished: TurnFinished, usage: Usage
) -> Map[Agent, Replies]:
    """Learn how long an agent's answers are; of too many agents half are forgotten, they are soon known again.

    One that became as long as it might would have become longer: it tells nothing, but that our cap was too low.
    """
    if 0 < arrival.reply_max <= usage.completion_tokens:
        return replies
    agent = agent_of(arrival)
    before = known(replies, agent)
    if before is None:
        before = NO_REPLIES
        for each in sorted(replies)[: AGENTS_MAX // 2] if len(replies) >= AGENTS_MAX else ():
            replies = replies.delete(each)
    cut = is_cut(finished)
    after = after_cut(before, finished.reply_cap) if cut else after_reply(before, usage, finished.reply_bytes)
    return replies.set(agent, after)


def _change(turn: Turn, usage: Usage, weights: Weights) -> Change:
    """Return by how much a turn was worth more, or less, to its payer than it seemed to be."""
    payer = turn.arrival.principal, turn.arrival.caller
    worth = service_of(usage.prompt_tokens, usage.cached_tokens or 0, usage.completion_tokens)
    return weights.changed(payer, turn.service, worth)


def rested(draft: Draft, run: Run, turn: Turn, finished: TurnFinished | None, now: Instant) -> Run:
    """Return a run whose last turn in flight has ended, with what its home keeps for it."""
    limits = draft.limits.working_set
    assert limits is not None
    measure, usage = run.measure, None if finished is None else finished.usage
    if usage is not None and makes_sense(usage):
        measure = measured(turn.arrival, usage.prompt_tokens, usage.prompt_tokens + usage.completion_tokens)
    elif turn.tokens:
        measure = measured(turn.arrival, turn.tokens, turn.tokens)
    is_out = finished is not None and run.at_rest
    replied = run.replied or (is_out and not run.paused)
    run = run._replace(measure=measure, replied=replied, kept=0, kept_until=None, loose=False)
    if not is_out:
        return run
    if not run.paused:
        _set_asked(draft, run, gone_idle(_asked(draft, run), now))
    return kept_since(draft, run, now)


def asked_on(draft: Draft, run: Run, arrived_at: Instant, now: Instant) -> None:
    """Learn that a run came back after an answer without tool calls."""
    _set_asked(draft, run, come_back(_asked(draft, run), max(0.0, arrived_at - run.ended_at), now))


def _asked(draft: Draft, run: Run) -> Asked:
    found = known(draft.working_set.askers, (run.principal, run.service_class))
    return _ASKED if found is None else found


def _set_asked(draft: Draft, run: Run, asked: Asked) -> None:
    askers = draft.working_set.askers.set((run.principal, run.service_class), asked)
    draft.working_set = draft.working_set._replace(askers=askers)


def kept_since(draft: Draft, run: Run, now: Instant) -> Run:
    """Return a run at rest with the place that its home keeps for it since it went out, if that pays."""
    limits, home = draft.limits.working_set, bound_to(draft.replicas, run)
    if limits is None or home is None:
        return run
    worth = worth_s(home, run.service_class, limits)
    if not run.paused:
        seconds = _patience_after_answer_s(draft, run, worth)
    else:
        seconds = _patience_s(draft, run, worth, now) if limits.forget else FOREVER_S
    until = Instant(run.ended_at + seconds)
    if until <= now:
        return run._replace(loose=True)
    run = run._replace(kept=run.measure.context, kept_until=until)
    lease(draft, run)
    return run


def _patience_s(draft: Draft, run: Run, worth: float, now: Instant) -> float:
    tool = NO_TOOL if run.out_on is None else run.out_on
    if tool == A_PERSON:
        return 0.0  # nobody knows for how long, and what is kept meanwhile is kept from others
    key, of_tools = (tool, worth_step(worth)), draft.working_set.patience
    patience, history = known(of_tools, key), known(draft.tools.histories, tool)
    if patience is None or is_stale(patience, 0 if history is None else history.returned, worth):
        patience = found_out(draft.tools, tool, worth, now)
        if len(of_tools) >= PATIENCE_MAX:
            for each in sorted(of_tools)[: PATIENCE_MAX // 2]:
                of_tools = of_tools.delete(each)
        draft.working_set = draft.working_set._replace(patience=of_tools.set(key, patience))
    return patience.seconds


def _patience_after_answer_s(draft: Draft, run: Run, worth: float) -> float:
    asked, after_answers = _asked(draft, run), draft.working_set.after_answers
    key = (run.principal, run.service_class), worth_step(worth)
    patience = known(after_answers, key)
    if patience is None or is_stale(patience, asked.answers, worth):
        patience = Patience(asked.answers, worth, patience_s(asked, worth))
        draft.working_set = draft.working_set._replace(after_answers=after_answers.set(key, patience))
    return patience.seconds


_LENGTHS: Final = Lengths()
_ASKED: Final = Asked()
_LEAST_LOADED: Final = PlacedBecause.LEAST_LOADED
_HOME_LOST: Final = PlacedBecause.HOME_LOST
_TOO_LARGE: Final = PlacedBecause.TOO_LARGE
"""Looking one up in its enum costs more than the rest of the question."""
