"""A runtime that tells what a test says."""

from collections.abc import Sequence

from luftpause.ports.run_trees import NotDecidedError, RuntimeAwayError, RunTree, TreeRun

RUNTIME = "http://127.0.0.1:7000"


class FakeRunTrees:
    """Knows one runtime, which is away while `tree` is None."""

    def __init__(self) -> None:
        self.known: Sequence[str] = (RUNTIME,)
        self.tree: RunTree | None = RunTree(runs=[TreeRun(handle="h1", status="Running", task="a <b>task")])
        self.decided: list[tuple[str, str, bool]] = []
        self.refusal = ""

    async def look(self, runtime: str) -> RunTree:
        """See `RunTrees`."""
        if self.tree is None:
            raise RuntimeAwayError("it sleeps")
        return self.tree

    async def decide(self, runtime: str, handle: str, call: str, *, allow: bool) -> bool:
        """See `RunTrees`."""
        if self.tree is None:
            raise RuntimeAwayError("it sleeps")
        if self.refusal:
            raise NotDecidedError(self.refusal)
        self.decided.append((handle, call, allow))
        return True
