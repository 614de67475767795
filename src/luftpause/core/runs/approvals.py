"""Which tool calls a person must allow first, and which were allowed already.

Grants go by a tool's long name: whose server it is of and what that calls it.
"""

from dataclasses import replace

from luftpause.core.model.ids import RunId
from luftpause.core.runs.events import ApprovalDecided, ApprovalScope
from luftpause.core.runs.state import CallingTools, PendingCall, Run, State, Tree
from luftpause.core.runs.tools import ToolSpec
from luftpause.core.runs.tree import descendants

DECLINED_TEXT = "Error: the user declined this tool call"


def approval_reason(state: State, run: Run, tool: ToolSpec) -> str | None:
    """Return why a person must allow a call of this tool, for people; None when the call may go."""
    if is_granted(state, run, tool.qualified):
        return None
    if tool.name in run.spawn.approve_tools or tool.qualified in run.spawn.approve_tools:
        return "the spawn wants this tool's calls to be allowed one by one"
    if tool.hints.says_destructive and not tool.hints.read_only:
        return "its server says that it may destroy something"
    return None


def is_granted(state: State, run: Run, tool: str) -> bool:
    """Whether calls of a tool, named in long, were allowed for the whole run or its whole tree."""
    tree = state.trees.get(run.tree)
    return tool in run.grants or (tree is not None and tool in tree.grants)


def pending_calls(state: State, run: Run) -> tuple[PendingCall, ...]:
    """Return the calls that somebody has to decide on, in the order asked for."""
    if not isinstance(run.phase, CallingTools):
        return ()
    waiting = (call for call in run.phase.calls if isinstance(call, PendingCall))
    return tuple(call for call in waiting if not is_granted(state, run, call.tool))


def grant(state: State, run: Run, tool: str, scope: ApprovalScope) -> State:
    """Let all further calls of a tool go, as far as the scope reaches."""
    if scope is ApprovalScope.RUN:
        granted = replace(run, grants=run.grants | {tool})
        return replace(state, runs=state.runs.set(run.spawn.run, granted))
    if scope is ApprovalScope.TREE:
        tree = state.trees.get(run.tree, Tree())
        return replace(state, trees=state.trees.set(run.tree, replace(tree, grants=tree.grants | {tool})))
    return state


def releases(state: State, decided: ApprovalDecided, tool: str) -> tuple[ApprovalDecided, ...]:
    """Return the decisions on other waiting calls of the tool that follow from this one."""
    run = state.runs[decided.run]
    if not decided.allow or decided.scope is ApprovalScope.ONCE:
        return ()
    family: tuple[Run, ...] = (run,)
    if decided.scope is ApprovalScope.TREE:
        family = (state.runs[run.tree], *descendants(state, run.tree))
    return tuple(
        released(each.spawn.run, call, decided.by)
        for each in family
        if isinstance(each.phase, CallingTools)
        for call in each.phase.calls
        if isinstance(call, PendingCall) and call.tool == tool
    )


def released(run: RunId, call: PendingCall, by: str) -> ApprovalDecided:
    """Return the decision that lets a call go which a grant covers."""
    return ApprovalDecided(run=run, call=call.asked.call, allow=True, by=by)
