"""The table of actions says the truth about their ends."""

import re
from typing import get_args

from luftpause.core.processes import actions, events


def test_the_table_lists_every_action_and_only_events_that_exist() -> None:
    assert actions.__doc__ is not None
    rows = [line.split("|")[1:3] for line in actions.__doc__.splitlines() if line.startswith("| `")]
    assert [row[0].strip(" `") for row in rows] == [action.__name__ for action in get_args(actions.Action)]
    known = {event.__name__ for event in get_args(events.Event)}
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row[1])} <= known
