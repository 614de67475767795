"""What runtimes tell of their sub-agents, for whoever shows them, and how a person's answer gets back there."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class RuntimeAwayError(Exception):
    """The runtime did not answer, or not as one. Its text tells a person why."""


class NotDecidedError(Exception):
    """The runtime did not take the decision. Its text tells a person why."""


class Costs(Struct, frozen=True, kw_only=True):
    """What a run, or all in its subtree, has cost; times in seconds."""

    turns: int = 0
    tool_calls: int = 0
    failed_tool_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    turn_seconds: float = 0.0
    tool_seconds: float = 0.0


class PendingApproval(Struct, frozen=True, kw_only=True):
    """A tool call that waits to be allowed. Its arguments are JSON, cut where they are long."""

    call: str
    tool: str
    arguments: str = ""
    reason: str = ""


class TreeRun(Struct, frozen=True, kw_only=True):
    """One sub-agent, of a principal and its caller.

    `task` is how its task begins; `above` the run of the LLM door that it was spawned by.
    """

    handle: str
    task: str = ""
    status: str
    phase: str = ""
    model: str = ""
    principal: str = ""
    caller: str = ""
    parent: str | None = None
    above: str | None = None
    error: str | None = None
    approvals: Sequence[PendingApproval] = ()
    own: Costs = Costs()
    subtree: Costs = Costs()


class RunTree(Struct, frozen=True, kw_only=True):
    """The runs of a runtime, those at work first; `omitted`: how many more it has."""

    runs: Sequence[TreeRun]
    omitted: int = 0


class RunTrees(Protocol):
    """The runtimes that may be asked."""

    @property
    def known(self) -> Sequence[str]:
        """Their base URLs."""
        ...

    async def look(self, runtime: str) -> RunTree:
        """Return the runs of a known runtime.

        Raises:
            RuntimeAwayError: it does not tell.
        """
        ...

    async def decide(self, runtime: str, handle: str, call: str, *, allow: bool) -> bool:
        """Allow or deny a call that waits at a known runtime; return False if nothing was waiting any more.

        Raises:
            RuntimeAwayError: it does not answer.
            NotDecidedError: it refuses.
        """
        ...
