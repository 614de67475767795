"""Whether a value fits a JSON schema, by the draft that the schema names, within a fixed number of steps.

Every keyword of the draft counts, and the formats of `schema_formats`. Nothing is ever fetched: a reference that leads
out of the schema leads nowhere. What `schema_drafts` cannot judge counts as fitting, so a complaint is always right;
whoever must be sure looks with `unsound_schema` first, and asks `strictly`.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from jsonschema.exceptions import ValidationError, best_match
from jsonschema.protocols import Validator
from referencing import Registry

from luftpause.services.runtime.schema_drafts import DRAFTS, LATEST, PURSE, Purse, TooMuchError
from luftpause.services.runtime.schema_words import shown

Judged: TypeAlias = Callable[[object], Iterable[ValidationError]]

STEPS_MAX: Final = 5_000
"""Of one judgement in the event loop; about four microseconds each."""

ANSWER_STEPS_MAX: Final = 500_000
"""For what is judged once and in a thread of its own."""

NODES_MAX: Final = 20_000
"""Objects, lists and values in a schema; a larger one judges nothing."""

TOO_MUCH: Final = "it is too large, or too deep, to be checked"
_NOTHING_ELSE: Final[Registry[Any]] = Registry()
_JUDGES_KEPT: Final = 256
_MESSAGE_MAX: Final = 200
_COUNTED: Final = frozenset(
    f"{side}{what}" for side in ("min", "max") for what in ("Length", "Items", "Properties", "Contains")
)
_PLACE_MAX: Final = 60
_PLACES_MAX: Final = 8


def misfit(value: object, schema: Mapping[str, object], *, part: object = None, steps: int = STEPS_MAX) -> str:
    """Return what is wrong with a value in one short sentence, empty when it fits or cannot be judged.

    With `part` it is judged by that part of the schema.
    """
    try:
        return _complaint(value, schema, part, steps)
    except (TooMuchError, RecursionError):
        return ""


def strictly(value: object, schema: Mapping[str, object], steps: int = ANSWER_STEPS_MAX) -> str:
    """Return the same, and a complaint where there is too much to judge too."""
    try:
        return _complaint(value, schema, None, steps)
    except (TooMuchError, RecursionError):
        return TOO_MUCH


def draft_of(schema: Mapping[str, object]) -> str | None:
    """Return which draft a schema is of, None for one that nobody knows."""
    named = schema.get("$schema", LATEST)
    draft = named.removesuffix("#") if isinstance(named, str) else ""
    return draft if draft in DRAFTS else None


@dataclass(frozen=True, slots=True)
class Survey:
    """What cannot be judged wherever in a schema it stands.

    Attributes:
        nested_draft: a part of the schema names a draft of its own.
        mixed: it has `unevaluatedProperties` and `patternProperties`, which the library would try with patterns of its
            own: they may take for ever.
    """

    nested_draft: bool
    mixed: bool


def survey(schema: Mapping[str, object]) -> Survey | None:
    """Look through a schema; None if it is too large."""
    level: list[object] = list(schema.values())
    keys, nested, nodes = set(schema), False, 0
    while level:
        nodes += len(level)
        if nodes > NODES_MAX:
            return None
        inner: list[object] = []
        for part in level:
            if isinstance(part, Mapping):
                nested = nested or isinstance(part.get("$schema"), str)
                keys.update(part)
                inner.extend(part.values())
            elif isinstance(part, list):
                inner.extend(part)
        level = inner
    return Survey(nested, {"unevaluatedProperties", "patternProperties"} <= keys)


def judge_of(schema: Mapping[str, object]) -> "Judging | None":
    """Return what judges by a schema, None where nothing can: it is too large, or not of one known draft."""
    return _JUDGES.judge_of(schema)


@dataclass(frozen=True, slots=True)
class Judging:
    """A schema's validator; `mixed` as in the survey."""

    validator: Validator
    mixed: bool


class _Judges:
    """Those of the schemas that were used lately, for any thread. Schemas are values: nobody changes one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, tuple[Mapping[str, object], Judging | None]] = OrderedDict()

    def judge_of(self, schema: Mapping[str, object]) -> Judging | None:
        with self._lock:
            known = self._kept.get(id(schema))
            if known is not None and known[0] is schema:
                self._kept.move_to_end(id(schema))
                return known[1]
        made = _made(schema)
        with self._lock:
            self._kept[id(schema)] = (schema, made)
            if len(self._kept) > _JUDGES_KEPT:
                self._kept.popitem(last=False)
        return made


_JUDGES: Final = _Judges()


def _made(schema: Mapping[str, object]) -> Judging | None:
    draft, seen = draft_of(schema), survey(schema)
    # The library would leave our draft for its own at a part that names one; the root's is read here.
    if draft is None or seen is None or seen.nested_draft:
        return None
    plain = {keyword: value for keyword, value in schema.items() if keyword != "$schema"}
    try:
        validator = DRAFTS[draft](plain, registry=_NOTHING_ELSE, format_checker=DRAFTS[draft].FORMAT_CHECKER)
    except (TypeError, AttributeError, ValueError, LookupError):
        return None  # an id that is none
    return Judging(validator, seen.mixed)


def _complaint(value: object, schema: Mapping[str, object], part: object, steps: int) -> str:
    judging = judge_of(schema)
    if judging is None or not (part is None or isinstance(part, Mapping | bool)):
        return ""
    judge = judging.validator
    if part is not None and part is not schema:
        judge = judge.evolve(schema=part)
    token = PURSE.set(Purse(steps, mixed=judging.mixed))
    try:
        found = best_match(cast(Judged, judge.iter_errors)(value))
        return "" if found is None else told_of(found)
    finally:
        PURSE.reset(token)


def told_of(error: ValidationError) -> str:
    """Return where something is wrong, and what, in one short sentence."""
    path = list(error.absolute_path)[:_PLACES_MAX]
    where = ".".join(str(part)[:_PLACE_MAX] for part in path)
    return f"{where}: {_message(error)}" if where else _message(error)


def _message(error: ValidationError) -> str:
    message, keyword = error.message, str(error.validator)
    if len(message) > _MESSAGE_MAX:
        return f"{shown(error.instance)} does not fit {keyword} {shown(error.validator_value)}"
    if keyword in _COUNTED:
        return f"{message} ({keyword}: {shown(error.validator_value)})"
    if keyword in ("anyOf", "oneOf") and error.context:
        return f"{message} ({_message(error.context[0])}, and so on)"
    return message
