"""The name of a tool call among all there ever were: servers spot repeats by it, and it tells which run is calling."""

from luftpause.core.model.ids import RunId, ToolCallId


def key_of(run: RunId, turns: int, call: ToolCallId) -> str:
    """Return the key of a call that a run asked for in its latest turn; `turns` counts those so far."""
    return f"{run}/{turns}/{call}"


def run_in(key: str) -> RunId | None:
    """Return the run that a key says is calling, None where it is no such key."""
    run, slash, _ = key.partition("/")
    return RunId(run) if run and slash else None
