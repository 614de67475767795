import re
from typing import get_args

from luftpause.core.runs import actions, events


def test_the_table_of_actions_names_every_action_and_only_events_that_exist() -> None:
    table = [line for line in (actions.__doc__ or "").splitlines() if line.startswith("| `")]
    named = {re.findall(r"`(\w+)`", line)[0] for line in table}
    assert named == {action.__name__ for action in get_args(actions.Action)}
    known = {event.__name__ for event in get_args(events.Event)}
    assert {word for line in table for word in re.findall(r"`(\w+)`", line)[1:]} <= known
