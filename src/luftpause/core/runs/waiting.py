"""Runs that come after others: when they may begin, and what they are told then."""

from luftpause.core.model.ids import RunId
from luftpause.core.runs.events import RunsAwaited
from luftpause.core.runs.state import Cancelled, Failed, Finished, Run, State


def all_over(state: State, run: Run) -> bool:
    """Whether all that a run comes after is over. What is not known (its journal was lost) never comes."""
    return all(state.runs[each].is_over for each in run.spawn.after if each in state.runs)


def awaited(state: State, run: Run) -> RunsAwaited:
    """Return that the wait is over, with how the runs ended, for the model."""
    told = "\n\n".join(_ending(state, each) for each in dict.fromkeys(run.spawn.after))
    return RunsAwaited(run=run.spawn.run, text=f"The runs that this task comes after are over.\n\n{told}")


def released_by(state: State, run: RunId) -> tuple[RunsAwaited, ...]:
    """Return which runs may begin because this one is over, by handle."""
    waiting = (state.runs[each] for each in sorted(state.waiting.get(run, ())))
    return tuple(awaited(state, each) for each in waiting if all_over(state, each))


def _ending(state: State, run: RunId) -> str:
    known = state.runs.get(run)
    match None if known is None else known.phase:
        case Finished(result=result):
            return f"Result of {run}:\n{result}"
        case Failed(error=error):
            return f"{run} failed: {error}"
        case Cancelled(why=why):
            return f"{run} gave no result: {why}"
        case _:
            return f"{run} gave no result: nothing is known of it"
