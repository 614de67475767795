"""What a turn asks for, where its request leaves that open or calls it by another name: a kind of replica and a model.

A model has its own name, and where a launcher has it, aliases and a pattern. Its own name goes before an alias, and an
alias before a pattern; small and capital letters differ. Pure look-ups in what replicas are declared to offer and what
launchers could load; whether one of them is healthy or up does not matter here.
"""

import re
from collections.abc import Collection
from operator import attrgetter
from typing import Final

from luftpause.core.model.ids import ModelName
from luftpause.core.model.refusals import Refusal, RefusalReason, models_named
from luftpause.core.model.replicas import ReplicaKind, ReplicaSpec
from luftpause.core.scheduling.residency.state import Residency
from luftpause.core.scheduling.state import Service

KIND_WORDS: Final = {ReplicaKind.GENERATIVE: "Generative", ReplicaKind.SINGLE_PASS: "Single-pass"}
PATTERN_CHARS_MAX: Final = 200
"""A longer name is matched with no pattern."""

_SINGLE: Final = ReplicaKind.SINGLE_PASS
_NOTHING: Final = Residency()


def services_of(spec: ReplicaSpec | None) -> tuple[Service, ...]:
    """Return what a replica is declared to offer, each once, however often the declaration repeats a model."""
    if spec is None:
        return ()
    if len(spec.models) == 1:  # most engines have one, and every look at a replica asks
        return ((spec.kind, spec.models[0]),)
    return tuple((spec.kind, model) for model in dict.fromkeys(spec.models))


def offered(serving: Collection[Service], residency: Residency) -> frozenset[Service]:
    """Return all that can be asked for: what replicas are declared to offer, and what launchers could load."""
    launched = ((model.spec.kind, name) for name, model in residency.models.items() if not model.is_dropped)
    return frozenset((*serving, *launched))


def own_name(services: Collection[Service], residency: Residency, model: ModelName) -> ModelName:
    """Return the name of the model that a name means; one that means none is returned as it is."""
    if not residency.models or any(each == model for _, each in services):
        return model
    in_order = sorted(residency.models.values(), key=attrgetter("order"))
    known = [each.spec for each in in_order if not each.is_dropped]
    for spec in known:
        if model in spec.aliases:
            return spec.model
    if len(model) <= PATTERN_CHARS_MAX:
        for spec in known:
            if spec.pattern and re.fullmatch(spec.pattern, model):
                return spec.model
    return model


def service_for(
    serving: Collection[Service], kind: ReplicaKind | None, model: ModelName, residency: Residency = _NOTHING
) -> Service | Refusal:
    """Return what is meant. A service that is named whole is returned as it is, served or not.

    Args:
        serving: all that replicas are declared to offer.
        kind: None: single-pass, if any such replica serves the model, else generative.
        model: empty: the only one that replicas of the kind serve.
        residency: what launchers could load.
    """
    services = offered(serving, residency) if residency.models else serving
    if model:
        name = own_name(services, residency, model)
        if kind is None:
            kind = _SINGLE if (_SINGLE, name) in services else ReplicaKind.GENERATIVE
        return kind, name
    kinds = tuple(ReplicaKind) if kind is None else (kind,)
    models = sorted({each for of_kind, each in services if of_kind in kinds})
    if len(models) == 1:
        return service_for(serving, kind, models[0], residency)
    what = f"{KIND_WORDS[kind]} replica" if kind is not None else "replica"
    if not models:
        message = f"the request names no model, and no {what} is declared"
        return Refusal(reason=RefusalReason.UNKNOWN_MODEL, message=message)
    message = f"the request names no model, and {what}s serve {len(models)}: {models_named(models)}"
    return Refusal(reason=RefusalReason.MODEL_NEEDED, message=message)
