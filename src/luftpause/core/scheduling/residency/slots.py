"""Which slot of its engine a turn goes to, and whose KV each slot holds.

A run keeps its slot while it can; only what somebody has no use for, or less use than others, is given up for it.
Engines share what is alike only inside one slot, so a slot that a run left behind goes before one that was never used:
what all runs of a harness begin with is in it already. Each function returns the residency after one change.
"""

from collections.abc import Callable, Sequence
from typing import Final

from luftpause.core.model.ids import Instant, ModelName, RunId, TurnId
from luftpause.core.scheduling.residency.kv_state import Slot
from luftpause.core.scheduling.residency.state import Residency

SLOTS_MAX: Final = 256
"""No engine is believed to have more."""


def opened(residency: Residency, model: ModelName, number: int) -> Residency:
    """Note that a model came up with so many slots, all empty; with none, its engine chooses by itself."""
    residency = closed(residency, model)
    if number <= 0:
        return residency
    return residency._replace(slots=residency.slots.set(model, (Slot(),) * min(number, SLOTS_MAX)))


def closed(residency: Residency, model: ModelName) -> Residency:
    """Note that a model is up no more."""
    if model not in residency.slots:
        return residency
    adrift = residency.adrift.delete(model) if model in residency.adrift else residency.adrift
    return residency._replace(slots=residency.slots.delete(model), adrift=adrift)


def choose(slots: Sequence[Slot], run: RunId | None, is_expected: Callable[[RunId], bool]) -> int | None:
    """Return where a turn goes; None when a turn is in flight in every slot.

    Args:
        slots: of its engine.
        run: its run; None for a turn that is in none.
        is_expected: whether a run that holds a slot is out on a tool, or waits.
    """
    best: int | None = None
    best_rank = (3, False, 0.0)
    for at, slot in enumerate(slots):
        if slot.turn is not None:
            continue
        if run is not None and slot.run == run:
            rank = 0, False, -slot.used_at
        elif slot.run is None:
            rank = 1, slot.tokens == 0, -slot.used_at
        else:
            rank = 2, is_expected(slot.run), slot.used_at
        if rank < best_rank:
            best, best_rank = at, rank
    return best


def taken(residency: Residency, model: ModelName, at: int, run: RunId | None, turn: TurnId) -> Residency:
    """Note that a turn goes to a slot, and that what was in it is its run's from now on, if it is in one."""
    slot = residency.slots[model][at]
    tokens = slot.tokens if slot.run == run else 0
    return _with(residency, model, at, slot._replace(run=run, turn=turn, tokens=tokens))


def let_go(residency: Residency, model: ModelName, turn: TurnId) -> Residency:
    """Note that a turn goes where its engine chooses: until it ends nobody knows which slots are free."""
    adrift = (*residency.adrift.get(model, ()), turn)
    return residency._replace(adrift=residency.adrift.set(model, adrift))


def settled(residency: Residency, model: ModelName, turn: TurnId, tokens: int, now: Instant) -> Residency:
    """Note that a turn has ended, with so many tokens in its slot; 0: nobody knows, and what was known stays."""
    at = slot_of(residency, model, turn)
    if at is None:
        return _landed(residency, model, turn)
    slot = residency.slots[model][at]
    return _with(residency, model, at, slot._replace(turn=None, tokens=tokens or slot.tokens, used_at=now))


def left_behind(residency: Residency, model: ModelName, run: RunId) -> Residency:
    """Note that a run is forgotten: what it has in slots is nobody's."""
    slots = residency.slots.get(model)
    if slots is None or all(slot.run != run for slot in slots):
        return residency
    freed = tuple(slot._replace(run=None) if slot.run == run else slot for slot in slots)
    return residency._replace(slots=residency.slots.set(model, freed))


def slot_of(residency: Residency, model: ModelName, turn: TurnId) -> int | None:
    """Return the slot that a turn is in flight in; None where the engine chose."""
    return next((at for at, slot in enumerate(residency.slots.get(model, ())) if slot.turn == turn), None)


def _landed(residency: Residency, model: ModelName, turn: TurnId) -> Residency:
    adrift = residency.adrift.get(model, ())
    if turn not in adrift:
        return residency
    left = tuple(each for each in adrift if each != turn)
    return residency._replace(adrift=residency.adrift.set(model, left) if left else residency.adrift.delete(model))


def _with(residency: Residency, model: ModelName, at: int, slot: Slot) -> Residency:
    slots = residency.slots[model]
    return residency._replace(slots=residency.slots.set(model, (*slots[:at], slot, *slots[at + 1 :])))
