"""How a run's conversation grows: the model gets the word with all that it has not heard yet."""

from dataclasses import replace

from luftpause.core.model.ids import ActiveMs
from luftpause.core.runs.messages import Message, UserMessage
from luftpause.core.runs.state import Generating, Run


def generating(run: Run, *told: Message, now: ActiveMs) -> Run:
    """Return the run with the word given to its model, which hears this and then what people sent meanwhile."""
    sent = tuple(UserMessage(text=text) for text in run.unheard)
    return replace(run, phase=Generating(since=now), messages=(*run.messages, *told, *sent), unheard=())


def answered(run: Run, *told: Message, now: ActiveMs) -> Run:
    """Return a run that gave its answer and goes on with something new, with a fresh allowance of tool calls."""
    fresh = replace(
        run,
        calls_before=run.own.tool_calls,
        follow_ups=run.follow_ups + 1,
        landing=False,
        repaired=False,
    )
    return generating(fresh, *told, now=now)
