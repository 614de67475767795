"""What holds of every state, whatever happened. For tests, the simulator and validation; never on the hot path."""

from luftpause.core.model.ids import RunId
from luftpause.core.runs.state import CallingTools, Run, SettledCall, State, Totals, WaitingForRuns
from luftpause.core.runs.tree import descendants


def check(state: State) -> None:
    """Raise AssertionError, naming the run, when something cannot be."""
    assert state.running == sum(not run.is_over for run in state.runs.values()), "the count of running runs is off"
    for run in state.runs.values():
        _check_run(run)
        _check_family(state, run)
    _check_indices(state)


def _check_run(run: Run) -> None:
    name, own, spawn = run.spawn.run, run.own, run.spawn
    assignments = run.follow_ups + 1
    assert own.tool_calls <= spawn.max_tool_calls * assignments, f"{name} asked for more calls than its allowance"
    assert own.turns <= (spawn.max_tool_calls + 2) * assignments, f"{name} took more turns than its allowance lets it"
    assert own.failed_tool_calls <= own.tool_calls, f"{name} has more failed calls than calls"
    assert run.calls_before <= own.tool_calls, f"{name} had more calls before than it ever had"
    assert run.is_over or run.messages, f"{name} runs without a conversation"
    assert run.models_failed <= len(spawn.fallback_models), f"{name} has no such model"
    if isinstance(run.phase, CallingTools):
        assert any(not isinstance(call, SettledCall) for call in run.phase.calls), f"{name} waits for nothing"
        ids = [call.asked.call for call in run.phase.calls]
        assert len(set(ids)) == len(ids), f"{name} has two calls of one id"
        assert not run.landing, f"{name} calls tools in its last turn"


def _check_family(state: State, run: Run) -> None:
    name, parent = run.spawn.run, run.spawn.parent
    if parent is not None and parent in state.runs:
        assert name in state.runs[parent].children, f"{name} is missing among its parent's children"
        assert run.tree == state.runs[parent].tree, f"{name} is in another tree than its parent"
    else:
        assert run.tree == name, f"{name} has no parent but another root"
    family = (run, *descendants(state, name))
    total = Totals()
    for member in family:
        total = total.plus(member.own)
    assert total == run.subtree, f"the subtree totals of {name} are off"
    assert run.open_runs == sum(not member.is_over for member in family), f"the open runs below {name} are off"


def _check_indices(state: State) -> None:
    waiting: dict[RunId, set[RunId]] = {}
    timed: dict[RunId, set[RunId]] = {}
    for name, run in state.runs.items():
        if isinstance(run.phase, WaitingForRuns):
            for awaited in run.spawn.after:
                waiting.setdefault(awaited, set()).add(name)
        if run.spawn.budget is not None and run.spawn.budget.seconds is not None:
            timed.setdefault(run.tree, set()).add(name)
        key = run.spawn.idempotency_key
        assert key is None or (run.spawn.principal, key) in state.keys, f"the key of {name} leads nowhere"
    assert waiting == dict(state.waiting.items()), "the index of waiting runs is off"
    assert timed == {tree: each.timed for tree, each in state.trees.items() if each.timed}, "the timed runs are off"
    assert all(run in state.runs for run in state.keys.values()), "a key leads to a run that is not there"
