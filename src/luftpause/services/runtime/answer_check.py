"""Whether a run's answer has the shape that was asked for: JSON, of a given schema."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from luftpause.services.runtime.schema_fit import strictly
from luftpause.services.runtime.soundness import oddity

_FENCED: Final = re.compile(r"\A```[a-zA-Z]*\n(.*)\n```\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fit:
    """It fits; `value` is what the text says."""

    value: object


@dataclass(frozen=True, slots=True)
class Misfit:
    """It does not; `complaint` says in a sentence what is wrong."""

    complaint: str


def verdict_on(text: str, schema: Mapping[str, object]) -> Fit | Misfit:
    """Return whether an answer fits. A fence around it, as models like to put, is no fault.

    A long answer takes its time, so this belongs in a thread.
    """
    plain = text.strip()
    fenced = _FENCED.match(plain)
    try:
        value: object = msgspec.json.decode(fenced.group(1) if fenced else plain)
    except (ValueError, RecursionError):
        return Misfit("it is not JSON, or not JSON alone")
    complaint = oddity({"answer": value}) or strictly(value, schema)
    return Misfit(complaint) if complaint else Fit(value)


def with_shape(system: str | None, schema: Mapping[str, object]) -> str:
    """Return a system prompt that also says what the answer must look like."""
    shape = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    asked = f"Your final answer must be JSON alone, without any other text, and fit this JSON schema: {shape}"
    return asked if system is None else f"{system}\n\n{asked}"
