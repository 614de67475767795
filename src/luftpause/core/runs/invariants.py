"""What holds of every state, whatever happened. For tests, the simulator and validation; never on the hot path."""

from luftpause.core.runs.state import CallingTools, Run, SettledCall, State, Totals
from luftpause.core.runs.tree import descendants


def check(state: State) -> None:
    """Raise AssertionError, naming the run, when something cannot be."""
    assert state.running == sum(not run.is_over for run in state.runs.values()), "the count of running runs is off"
    for run in state.runs.values():
        _check_run(run)
        _check_family(state, run)


def _check_run(run: Run) -> None:
    name, own = run.spawn.run, run.own
    assert own.tool_calls <= run.spawn.max_tool_calls, f"{name} asked for more calls than its budget"
    assert own.turns <= run.spawn.max_tool_calls + 1, f"{name} took more turns than its budget allows"
    assert own.failed_tool_calls <= own.tool_calls, f"{name} has more failed calls than calls"
    assert run.is_over == (not run.messages), f"{name} keeps its conversation exactly while it runs"
    if isinstance(run.phase, CallingTools):
        assert any(not isinstance(call, SettledCall) for call in run.phase.calls), f"{name} waits for nothing"
        ids = [call.asked.call for call in run.phase.calls]
        assert len(set(ids)) == len(ids), f"{name} has two calls of one id"


def _check_family(state: State, run: Run) -> None:
    name, parent = run.spawn.run, run.spawn.parent
    if parent is not None and parent in state.runs:
        assert name in state.runs[parent].children, f"{name} is missing among its parent's children"
        assert run.tree == state.runs[parent].tree, f"{name} is in another tree than its parent"
    else:
        assert run.tree == name, f"{name} has no parent but another root"
    total = Totals()
    for member in (run, *descendants(state, name)):
        total = total.plus(member.own)
    assert total == run.subtree, f"the subtree totals of {name} are off"
