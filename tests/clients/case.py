"""One run of one client: how it is started, and what has to come of it.

`{base}` in arguments, environment and files stands for the LLM door, `{mcp}` for the MCP door, `{home}` for a folder of
the client's own, `{own}` for the one that it is installed in, `{programs}` and `{examples}` for folders of this
repository.
"""

from dataclasses import dataclass, field
from typing import Final

MODEL: Final = "fake"
PLANNER: Final = "planner"
"""The model of a client that is an MCP client too: it follows a plan. Its sub-agents are on MODEL."""

CALL: Final = "Say hello. [tools:1] [tool:{tool}] [arg:{argument}=echo hello]"
"""One round of one call of a shell."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run of one client.

    Attributes:
        package: what it is installed as.
        folder: where in the clients' folder it lies: `python`, or a folder of its own for a program from npm.
        runs: how many runs it has to make, sub-agents included.
        children: how many of them have to be known as sub-agents.
        calls: how many tool calls there have to be, at least.
        open_calls: how many runs end in a call, since the client takes one for its answer.
        files: to be written into its home before it starts.
        look_ups: how many sub-agents it lets look something up, through the MCP door.
        at_once: whether it spawns them together, or runs one after another.
    """

    name: str
    package: str
    folder: str
    wire: str
    command: tuple[str, ...]
    runs: int = 1
    children: int = 0
    calls: int = 1
    open_calls: int = 0
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    look_ups: int = 0
    at_once: bool = False
