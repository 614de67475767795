"""The tools of the fake MCP server: what they are called, how long they take, what they answer.

Pure but for the effects file, whose lines count the calls that were really carried out. Knows no transport.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mcp_types import Tool, ToolAnnotations

LOOKUP_S = (0.5, 2.0)
DEEP_S = (2.0, 5.0)
_FINDINGS = (
    "It is first mentioned in a ledger that nobody kept.",
    "Two sources agree and a third was not asked.",
    "Most of it is water, the rest is paperwork.",
    "The number most often given is seven.",
    "Experts call it settled; amateurs go on measuring.",
    "It lies a little to the north of where one expects it.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A fake MCP server.

    Attributes:
        delay_s: how long `lookup` and `delete_note` take, seconds; None: random within LOOKUP_S.
        deep_delay_s: how long `deep_search` takes, seconds; None: random within DEEP_S.
        seed: the same seed gives the same delays, call by call, and the same answers.
        destructive: also offer `delete_note`.
        effects: file that gets one JSON line per call as it begins; None: no file.
    """

    delay_s: float | None = None
    deep_delay_s: float | None = None
    seed: int = 0
    destructive: bool = False
    effects: Path | None = None


@dataclass(frozen=True, slots=True)
class FakeTool:
    """A tool: its declaration, its one argument, its delay and its answer."""

    tool: Tool
    argument: str
    delay_s: Callable[[random.Random], float]
    answer: Callable[[str, random.Random], str]


def offered_tools(settings: Settings) -> Mapping[str, FakeTool]:
    """Return the tools by name, in the order in which they are listed."""
    tools = [
        _searching("lookup", "Look something up, quickly: one short finding.", 1, settings.delay_s, LOOKUP_S),
        _searching("deep_search", "Search at length: several findings, slowly.", 4, settings.deep_delay_s, DEEP_S),
    ]
    if settings.destructive:
        tools.append(_deleting(settings.delay_s))
    return {tool.tool.name: tool for tool in tools}


def record_effect(path: Path, name: str, value: str) -> None:
    """Append one line that says which tool was called with what. Blocks on the file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"tool": name, "argument": value}) + "\n")


def _searching(
    name: str, description: str, findings: int, fixed_s: float | None, range_s: tuple[float, float]
) -> FakeTool:
    def answer(query: str, rng: random.Random) -> str:
        found = " ".join(rng.sample(_FINDINGS, findings))
        return f'Findings on "{query}": {found}'

    hints = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    declared = _declared(name, description, "query", "What to look for, in a few words.", hints)
    return FakeTool(declared, "query", _delay(fixed_s, range_s), answer)


def _deleting(fixed_s: float | None) -> FakeTool:
    def answer(note: str, _: random.Random) -> str:
        return f'The note "{note}" is deleted.'

    hints = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)
    declared = _declared("delete_note", "Delete a note for good.", "name", "Name of the note.", hints)
    return FakeTool(declared, "name", _delay(fixed_s, LOOKUP_S), answer)


def _delay(fixed_s: float | None, range_s: tuple[float, float]) -> Callable[[random.Random], float]:
    return lambda rng: rng.uniform(*range_s) if fixed_s is None else fixed_s


def _declared(name: str, description: str, argument: str, about: str, hints: ToolAnnotations) -> Tool:
    schema: dict[str, object] = {
        "type": "object",
        "properties": {argument: {"type": "string", "description": about}},
        "required": [argument],
        "additionalProperties": False,
    }
    return Tool(name=name, description=description, input_schema=schema, annotations=hints)
