"""Recognising a conversation by what was said in it, for harnesses that echo no ids.

A run is known again by an answer that we served: the next request repeats the conversation up to it, and it. What is
remembered of an answer is a few *marks*, digests that tell nothing of the text:

| mark | digest of                                             | recognises                                            |
| ---- | ----------------------------------------------------- | ----------------------------------------------------- |
| `a:` | all messages of the request, then the answer's text   | a conversation that goes on                           |
| `c:` | all messages of the request, where it ended in calls  | one whose harness writes calls and results as text    |
| `t:` | the answer's text alone, where it is long enough      | one whose beginning was compacted away                |

Whoever finds two runs behind a mark has found none.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from luftpause.core.model.ids import Mark

DIGEST_BYTES: Final = 16
ANSWERS_MAX: Final = 4
"""So many of the last answers in a request are looked at."""
TEXT_CHARS_MIN: Final = 48
"""A shorter answer alone identifies nothing: many conversations have it."""
TEXT_CHARS_MAX: Final = 64 * 1024
"""A longer answer is not looked at."""
_REPEATED_OTHERWISE: Final = ("\nAction Input:", "\nObservation:")
"""What follows is not repeated as it was said by harnesses that have calls written as text: LlamaIndex writes arguments
anew, crewai adds what came of a call to the very answer that made it."""


class Utterance(Struct, frozen=True):
    """One message: who speaks, and the text of it."""

    role: str
    text: str


class Said(Struct, frozen=True):
    """What was said in a request.

    Attributes:
        so_far: digest of the whole conversation, which the answer's own marks go on from.
        marks: what it may be recognised by, the newest answer first.
    """

    so_far: bytes
    marks: tuple[Mark, ...]
    scope: str = ""


def said_in(conversation: Iterable[Utterance], scope: str = "") -> Said:
    """Return the marks of a request's conversation. What differs in scope, as by caller or model, is never the same."""
    digest = blake2b(scope.encode("utf-8", "replace"), digest_size=DIGEST_BYTES)
    answers: list[tuple[bytes, str]] = []
    for utterance in conversation:
        text = utterance.text.strip()
        if utterance.role == "assistant":
            answers.append((digest.digest(), text))
        digest.update(_entry(utterance.role, text))
    marks: dict[Mark, None] = {}
    for before, text in reversed(answers[-ANSWERS_MAX:]):
        marks.update(dict.fromkeys((*_text_marks(before, text, scope), _mark("c", before))))
    return Said(digest.digest(), tuple(marks), scope)


def marks_of_answer(said: Said, text: str | None, *, has_calls: bool) -> tuple[Mark, ...]:
    """Return what an answer is to be recognised by.

    Args:
        said: in the request that it answers.
        text: the answer's text; None where it was too long to be kept.
        has_calls: whether it ended in tool calls.
    """
    if has_calls:
        return (_mark("c", said.so_far),)
    return () if text is None else _text_marks(said.so_far, text.strip(), said.scope)


def _text_marks(before: bytes, text: str, scope: str) -> tuple[Mark, ...]:
    for word in _REPEATED_OTHERWISE:
        text = text.partition(word)[0].rstrip()
    if not text or len(text) > TEXT_CHARS_MAX:
        return ()
    whole = _mark("a", before, _entry("assistant", text))
    if len(text) < TEXT_CHARS_MIN:
        return (whole,)
    return whole, _mark("t", _entry(scope, text))


def _entry(role: str, text: str) -> bytes:
    """Return a message as it is digested: no two different ones look alike when they stand in a row."""
    said = text.encode("utf-8", "replace")
    return b"%b\0%d\0%b" % (role.encode("utf-8", "replace"), len(said), said)


def _mark(kind: str, *parts: bytes) -> Mark:
    return Mark(f"{kind}:{blake2b(b''.join(parts), digest_size=DIGEST_BYTES).hexdigest()}")
