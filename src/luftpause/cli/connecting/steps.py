"""What somebody has to do so that a client uses a door: values, as the recipes give them and the command shows them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Door(Enum):
    """One of the two doors; the value is what the command line calls it."""

    LLM = "llm"
    MCP = "mcp"


class Format(Enum):
    """How a client's file is written."""

    JSON = "json"
    TOML = "toml"
    YAML = "yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where the doors are, and how a client introduces itself.

    Attributes:
        llm: the LLM door, without `/v1`.
        mcp: the MCP door, with `/mcp`.
        model: what the client asks for.
        caller: the name that its work is accounted to.
        token_env: the variable that holds the doors' token; empty while they have none.
    """

    llm: str
    mcp: str
    model: str
    caller: str
    token_env: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """Environment variables of the client. A value in `from_env` is that of another variable, never shown."""

    values: Mapping[str, str]
    from_env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of the client's own."""

    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """What belongs into a file of the client's. `path` may begin with `~`; a relative one begins in the project."""

    path: str
    format: Format
    content: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Something to do by hand, or to know."""

    text: str


Step: TypeAlias = Variables | Command | Fragment | Advice


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one client is pointed at one door. `tried` says what was run with this product, empty for nothing."""

    door: Door
    steps: tuple[Step, ...]
    tried: str = ""
