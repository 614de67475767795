"""What a turn asks for, where its request leaves that open: any kind of replica, or the only model there is.

Pure look-ups in what replicas are declared to offer; whether one of them is healthy does not matter here.
"""

from collections.abc import Collection
from typing import Final

from luftpause.core.model.ids import ModelName
from luftpause.core.model.refusals import Refusal, RefusalReason, models_named
from luftpause.core.model.replicas import ReplicaKind
from luftpause.core.scheduling.state import Service

KIND_WORDS: Final = {ReplicaKind.GENERATIVE: "Generative", ReplicaKind.SINGLE_PASS: "Single-pass"}
_SINGLE: Final = ReplicaKind.SINGLE_PASS


def service_for(serving: Collection[Service], kind: ReplicaKind | None, model: ModelName) -> Service | Refusal:
    """Return what is meant. A service that is named whole is returned as it is, served or not.

    Args:
        serving: all that replicas are declared to offer.
        kind: None: single-pass, if any such replica serves the model, else generative.
        model: empty: the only one that replicas of the kind serve.
    """
    if model:
        if kind is None:
            kind = _SINGLE if (_SINGLE, model) in serving else ReplicaKind.GENERATIVE
        return kind, model
    kinds = tuple(ReplicaKind) if kind is None else (kind,)
    models = sorted({each for of_kind, each in serving if of_kind in kinds})
    if len(models) == 1:
        return service_for(serving, kind, models[0])
    what = f"{KIND_WORDS[kind]} replica" if kind is not None else "replica"
    if not models:
        message = f"the request names no model, and no {what} is declared"
        return Refusal(reason=RefusalReason.UNKNOWN_MODEL, message=message)
    message = f"the request names no model, and {what}s serve {len(models)}: {models_named(models)}"
    return Refusal(reason=RefusalReason.MODEL_NEEDED, message=message)
