"""KV parking: which runs' KV is saved before their model goes, which turn gets it back, and when a file is deleted.

Saved is what a run will ask for again, inside its tool's TTL or with a turn that waits, where that is cheaper than to
compute it again, and as far as the launcher's files may grow: what is worth least for its size goes first. A run that
is late still finds its file, unless others took the room. Whatever fails, the engine computes the prompt again.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from immutables import Map

from luftpause.core.model.ids import Instant, KvFile, LauncherId, ModelName, RunId
from luftpause.core.model.parked_kv import SavedKv
from luftpause.core.model.turns import TurnShape
from luftpause.core.scheduling.ages import AGE_S_MAX
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.events import TurnArrived, TurnFinished
from luftpause.core.scheduling.residency import kv_costs, slots
from luftpause.core.scheduling.residency.actions import DropKv, KvVerdict
from luftpause.core.scheduling.residency.events import ModelDown
from luftpause.core.scheduling.residency.kv_state import NO_SEAT, Parked, ParkPhase, Seat, Slot
from luftpause.core.scheduling.residency.leases import Returns
from luftpause.core.scheduling.residency.reasons import KvDropReason, KvReason, UnloadReason, UnloadWhy
from luftpause.core.scheduling.residency.state import Model, ModelPhase
from luftpause.core.scheduling.residency.uses import absence_of
from luftpause.core.scheduling.state import Replica, Run, Turn
from luftpause.core.scheduling.working_set.lengths import prompt_tokens
from luftpause.core.scheduling.working_set.state import Lengths

NOTHING_MEASURED: Final = Lengths()
"""What is known of a model's texts where nobody measures them."""

FACTOR_MAX: Final = 2
"""A file that holds so many times more, or less, than the run's KV is another's: the engine had used the slot."""

_SAVED: Final = (KvReason.EXPECTED, KvReason.WAITS)
_COMES_BACK: Final = (UnloadReason.MAKES_ROOM, UnloadReason.ASKED)
"""After a stop for one of these the same engine may be started again for the same runs."""


class _Kept(NamedTuple):
    """KV that is in a file or could be, in order of worth: the greater is kept rather."""

    use: int
    gain_per_byte: float
    seq: int
    model: ModelName
    run: RunId
    size: int


def seat(draft: Draft, arrival: TurnArrived, run: Run | None, replica: Replica) -> Seat:
    """Return where in its engine a turn goes that is being placed, and what it is to find there, and note both.

    The engine chooses where nobody knows which slots are free: where others send requests past us, and as long as it
    chose for another turn in flight; and for a run whose KV is in it, nobody knows where: it finds that itself.
    """
    name = draft.residency.of_replica.get(replica.replica)
    of_model = None if name is None else draft.residency.slots.get(name)
    if name is None or of_model is None or arrival.shape is TurnShape.ERRAND:
        return NO_SEAT  # an errand computes no prompt
    own, runs = None if run is None else run.run, draft.runs
    kept = parked_of(draft, name, run.run) if run is not None else None
    if kept is not None and kept.phase is not ParkPhase.KEPT:
        kept = None  # another turn of the run has it
    at = None
    is_adrift = name in draft.residency.adrift and kept is None
    if not (replica.foreign or is_adrift or _is_somewhere(run, replica, of_model)):
        at = slots.choose(of_model, own, lambda holder: _is_expected(runs.get((holder, name))))
    if at is None:
        draft.residency = slots.let_go(draft.residency, name, arrival.turn)
        if kept is not None:
            _drop(draft, name, arrival.run, KvDropReason.PASSED_OVER)
        return NO_SEAT
    has_own = own is not None and of_model[at].run == own and of_model[at].tokens > 0
    draft.residency = slots.taken(draft.residency, name, at, own, arrival.turn)
    if kept is None:
        return Seat(at)
    if has_own or kept.build != draft.residency.models[name].build:
        _drop(draft, name, arrival.run, KvDropReason.PASSED_OVER if has_own else KvDropReason.OUTDATED)
        return Seat(at)
    _put(draft, name, arrival.run, kept._replace(phase=ParkPhase.RESTORING, turn=arrival.turn))
    return Seat(at, kept.file)


def seat_of(draft: Draft, turn: Turn) -> Seat:
    """Return where in its engine a turn in flight was sent, and with what."""
    name = draft.residency.of_replica.get(turn.replica)
    at = None if name is None else slots.slot_of(draft.residency, name, turn.arrival.turn)
    kept = None if at is None or name is None else parked_of(draft, name, turn.arrival.run)
    return Seat(at, kept.file if kept is not None and kept.turn == turn.arrival.turn else None)


def leave(draft: Draft, turn: Turn, finished: TurnFinished | None, now: Instant) -> None:
    """Note that a turn has ended, and learn what its restore was worth; `finished` where it was answered whole."""
    arrival = turn.arrival
    name = draft.residency.of_replica.get(turn.replica)
    if name is not None and name in draft.residency.slots:
        tokens = _tokens(arrival, finished)
        draft.residency = slots.settled(draft.residency, name, arrival.turn, tokens, now)
    kept = parked_of(draft, arrival.model, arrival.run)
    if kept is None or kept.turn != arrival.turn:
        return
    if finished is not None:
        model = draft.residency.models[arrival.model]
        cached = None if finished.usage is None else finished.usage.cached_tokens
        took_s = finished.restore_s if finished.restore_s is not None and _is_time(finished.restore_s) else None
        costs = kv_costs.after_restore(model.kv, kept.tokens, took_s, cached)
        _put_model(draft, model._replace(kv=costs))
    _drop(draft, arrival.model, arrival.run, KvDropReason.RESTORED)


def forget(draft: Draft, run: Run) -> None:
    """Note that a run with one model is forgotten: its slots are nobody's, and its file goes."""
    draft.residency = slots.left_behind(draft.residency, run.model, run.run)
    _drop(draft, run.model, run.run, KvDropReason.RUN_ENDED)


def verdicts(draft: Draft, model: Model, why: UnloadWhy, now: Instant) -> tuple[KvVerdict, ...]:
    """Return what becomes of the KV in each slot of an engine that is about to stop with nothing in flight.

    What is to be saved is noted, and what has to make room for it goes.
    """
    parking = draft.residency.launchers[model.launcher].parking
    held = _held_by_runs(draft.residency.slots.get(model.name, ()))
    if not held or not parking or why.reason not in _COMES_BACK:
        return ()
    returns = Returns(draft.tools, draft.limits.residency, now)
    judged = {run: _judge(draft, model, run, slot, returns) for run, (_, slot) in held.items()}
    wanted = [
        _worth(draft, model, run, slot.tokens, returns, draft.next_seq)
        for run, (_, slot) in held.items()
        if judged[run] in _SAVED
    ]
    fit = [each.run for each in _keep(draft, model.launcher, wanted, returns)]
    found: list[KvVerdict] = []
    for run in (*fit, *(run for run in held if run not in fit)):
        at, slot = held[run]
        file, reason = None, judged[run]
        if run in fit:
            file = KvFile(draft.take_seq())
            _drop(draft, model.name, run, KvDropReason.OUTDATED)
            size = kv_costs.size_of(model.kv, slot.tokens)
            _put(draft, model.name, run, Parked(file, slot.tokens, size, model.build))
        elif reason in _SAVED:
            reason = KvReason.NO_ROOM
        found.append(KvVerdict(slot=at, run=run, tokens=slot.tokens, why=reason, file=file))
    return tuple(found)


def take_in(draft: Draft, model: Model, told: ModelDown, now: Instant) -> Model:
    """Take in what was saved before a stop that was ordered; what was not is forgotten. Return the model as it is."""
    costs = kv_costs.after_prefill(model.kv, told.prefill_s if _is_time(told.prefill_s) else 0.0)
    saved = {each.file: each for each in told.kv if _makes_sense(each)}
    for run, kept in _parked(draft, model.name):
        each = saved.pop(kept.file, None)
        if each is not None:
            costs = kv_costs.after_save(costs, each.tokens, each.size, each.took_s)
        if kept.phase is ParkPhase.SAVING:
            _settle(draft, model.name, run, each)
    model = _put_model(draft, model._replace(kv=costs))
    _order_drop(draft, model.launcher, saved, KvDropReason.UNKNOWN)
    _keep(draft, model.launcher, [], Returns(draft.tools, draft.limits.residency, now))
    return model


def reconcile(draft: Draft, launcher: LauncherId, files: tuple[SavedKv, ...], now: Instant) -> None:
    """Set what is thought of a launcher's files right by what it has."""
    has = {each.file: each for each in files if _makes_sense(each)}
    strange = [each.file for each in files if each.file not in has]
    for name, model in sorted(draft.residency.models.items()):
        if model.launcher != launcher:
            continue
        for run, kept in _parked(draft, name):
            each = has.pop(kept.file, None)
            if kept.phase is ParkPhase.SAVING and (each is not None or model.phase is not ModelPhase.STOPPING):
                _settle(draft, name, run, each)
            elif kept.phase is not ParkPhase.SAVING and each is None:
                _take_out(draft, name, run)
    _order_drop(draft, launcher, (*has, *strange), KvDropReason.UNKNOWN)
    _keep(draft, launcher, [], Returns(draft.tools, draft.limits.residency, now))


def drop_all(draft: Draft, model: Model) -> None:
    """Let all files of a model go."""
    for run in sorted(draft.residency.parked.get(model.name) or ()):
        _drop(draft, model.name, run, KvDropReason.OUTDATED)


def parked_of(draft: Draft, model: ModelName, run: RunId) -> Parked | None:
    """Return what is kept of a run's KV with a model; None when nothing is."""
    of_model = draft.residency.parked.get(model)
    return None if of_model is None else of_model.get(run)


def _judge(draft: Draft, model: Model, run: RunId, slot: Slot, returns: Returns) -> KvReason:
    """Return whether the KV of a run in a slot is worth saving, room left aside."""
    use = _use(draft.runs.get((run, model.name)), returns)
    if not use:
        return KvReason.NOT_EXPECTED
    if model.kv.misses >= kv_costs.MISSES_MAX:
        return KvReason.NEVER_HELPS
    if slot.tokens < kv_costs.TOKENS_MIN or kv_costs.gain_s(model.kv, slot.tokens) <= 0:
        return KvReason.NOT_WORTH
    return KvReason.WAITS if use > 1 else KvReason.EXPECTED


def _keep(draft: Draft, launcher: LauncherId, wanted: list[_Kept], returns: Returns) -> list[_Kept]:
    """Return which of these fit into what a launcher may keep, best first; files that are worth less go."""
    left = draft.residency.launchers[launcher].parking
    kept: list[_Kept] = []
    for name, model in sorted(draft.residency.models.items()):
        if model.launcher == launcher:
            for run, parked in _parked(draft, name):
                if parked.phase is ParkPhase.KEPT:
                    worth = _worth(draft, model, run, parked.tokens, returns, parked.file)
                    kept.append(worth._replace(size=parked.size))
                else:
                    left -= parked.size
    fit: list[_Kept] = []
    for each in sorted((*kept, *wanted), reverse=True):
        if each.size <= left:
            left -= each.size
            fit.append(each)
        elif each not in wanted:
            _drop(draft, each.model, each.run, KvDropReason.NO_ROOM)
    return [each for each in fit if each in wanted]


def _worth(draft: Draft, model: Model, run: RunId, tokens: int, returns: Returns, seq: int) -> _Kept:
    size = kv_costs.size_of(model.kv, tokens)
    if model.kv.size is None:  # a guess that is too high must not keep the first file from being written
        size = min(size, draft.residency.launchers[model.launcher].parking)
    gain = kv_costs.kept_gain_s(model.kv, tokens) / max(1, size)
    return _Kept(_use(draft.runs.get((run, model.name)), returns), gain, seq, model.name, run, size)


def _use(run: Run | None, returns: Returns) -> int:
    """Return how certain it is that a run asks again: 2 a turn of it waits, 1 its tool's TTL lasts, 0 not."""
    if run is None:
        return 0
    if run.held:
        return 2
    absence = absence_of(run)
    return int(absence is not None and returns.leased_until({absence: 1}) is not None)


def _is_somewhere(run: Run | None, replica: Replica, of_model: tuple[Slot, ...]) -> bool:
    """Say whether an engine holds a run's KV in a slot, or beside them, that nobody knows."""
    is_home = run is not None and run.home == replica.replica and run.home_epoch == replica.epoch
    return is_home and run is not None and all(slot.run != run.run for slot in of_model)


def _is_expected(run: Run | None) -> bool:
    return run is not None and (run.paused or bool(run.held))


def _held_by_runs(of_model: tuple[Slot, ...]) -> dict[RunId, tuple[int, Slot]]:
    """Return each run that holds a slot with nothing in flight, with the one of its slots that was used last."""
    found: dict[RunId, tuple[int, Slot]] = {}
    for at, slot in enumerate(of_model):
        if slot.run is not None and slot.turn is None:
            known = found.get(slot.run)
            if known is None or slot.used_at > known[1].used_at:
                found[slot.run] = at, slot
    return found


def _tokens(arrival: TurnArrived, finished: TurnFinished | None) -> int:
    """Return how many tokens a turn left in its slot; 0: nobody knows."""
    if finished is None:
        return 0
    usage = finished.usage
    if usage is None:
        return prompt_tokens(NOTHING_MEASURED, None, arrival)
    return max(0, usage.prompt_tokens) + max(0, usage.completion_tokens)


def _settle(draft: Draft, model: ModelName, run: RunId, saved: SavedKv | None) -> None:
    """End the saving of a run's KV: it is kept as it was saved, or nothing is."""
    kept = parked_of(draft, model, run)
    if kept is None or saved is None or not kept.tokens <= FACTOR_MAX * saved.tokens <= FACTOR_MAX**2 * kept.tokens:
        _take_out(draft, model, run)
    else:
        _put(draft, model, run, kept._replace(phase=ParkPhase.KEPT, tokens=saved.tokens, size=saved.size))


def _parked(draft: Draft, model: ModelName) -> list[tuple[RunId, Parked]]:
    return sorted((draft.residency.parked.get(model) or Map()).items())


def _put(draft: Draft, model: ModelName, run: RunId, parked: Parked) -> None:
    of_model: Map[RunId, Parked] = draft.residency.parked.get(model) or Map()
    of_model = of_model.set(run, parked)
    draft.residency = draft.residency._replace(parked=draft.residency.parked.set(model, of_model))


def _take_out(draft: Draft, model: ModelName, run: RunId) -> None:
    parked, of_model = draft.residency.parked, draft.residency.parked[model].delete(run)
    draft.residency = draft.residency._replace(parked=parked.set(model, of_model) if of_model else parked.delete(model))


def _drop(draft: Draft, model: ModelName, run: RunId, why: KvDropReason) -> None:
    """Have a run's file deleted, if it has one."""
    kept = parked_of(draft, model, run)
    if kept is not None:
        _take_out(draft, model, run)
        _order_drop(draft, draft.residency.models[model].launcher, (kept.file,), why)


def _order_drop(draft: Draft, launcher: LauncherId, files: Iterable[KvFile], why: KvDropReason) -> None:
    in_order = tuple(sorted(files))
    if in_order:
        draft.order(DropKv(launcher=launcher, files=in_order, why=why))


def _put_model(draft: Draft, model: Model) -> Model:
    draft.residency = draft.residency._replace(models=draft.residency.models.set(model.name, model))
    return model


def _is_time(seconds: float) -> bool:
    return 0.0 <= seconds <= AGE_S_MAX


def _makes_sense(saved: SavedKv) -> bool:
    return saved.tokens > 0 and saved.size >= 0 and _is_time(saved.took_s)
