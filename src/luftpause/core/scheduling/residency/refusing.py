"""Why turns for a model are turned away, and in which words."""

from luftpause.core.model.ids import Instant
from luftpause.core.model.refusals import Refusal, RefusalReason
from luftpause.core.scheduling.draft import Draft
from luftpause.core.scheduling.residency.room import Shortage, shortage
from luftpause.core.scheduling.residency.state import Model, ModelPhase


def why_refused(draft: Draft, model: Model, now: Instant) -> Refusal | None:
    """Return why a turn for a model that is down cannot wait for it; None when it can."""
    if model.phase is not ModelPhase.DOWN:
        return None
    if model.closed_until is not None and now < model.closed_until:
        return left_alone(model, now)
    if not draft.residency.launchers[model.launcher].connected:
        return None
    short = shortage(draft.residency, model)
    return None if short is None else refusal_of(model, short)


def goes_along(model: Model) -> Refusal:
    """Return the refusal of turns for a model whose launcher ends."""
    message = f"model '{model.name}' is not to be had: its launcher '{model.launcher}' is shutting down"
    return Refusal(reason=RefusalReason.SHUTTING_DOWN, message=message)


def left_alone(model: Model, now: Instant) -> Refusal:
    """Return the refusal of turns for a model that failed too often."""
    message = f"model '{model.name}' failed {model.failures} times in a row and is left alone for a while"
    if model.failed_why:
        message += f": {model.failed_why}"
    return Refusal(reason=RefusalReason.MODEL_FAILING, message=message, retry_after_s=closed_s(model, now))


def closed_s(model: Model, now: Instant) -> float | None:
    """Return for how long a model is left alone, seconds; None when it is not."""
    return None if model.closed_until is None else max(0.0, model.closed_until - now)


def refusal_of(model: Model, short: Shortage) -> Refusal:
    """Return the refusal of turns for a model that cannot be loaded."""
    return Refusal(reason=RefusalReason.INSUFFICIENT_MEMORY, message=told_short(model, short))


def told_short(model: Model, short: Shortage) -> str:
    """Return why a model cannot be loaded, as a sentence without its full stop."""
    if short.rival is not None:
        return f"model '{model.name}' cannot be loaded while '{short.rival}' of its group is kept up"
    kept = f", and {size(short.kept)} of it are taken by models that are kept up" if short.kept else ""
    budget = f"the budget of {model.spec.device} is {size(short.budget)}{kept}"
    return f"model '{model.name}' needs {size(short.need)}, but {budget}"


def size(count: int) -> str:
    """Return bytes as a person reads them."""
    for unit, many in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << many:
            return f"{count / (1 << many):.4g} {unit}"
    return f"{count} bytes"
