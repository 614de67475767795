"""The table of what ends an action: complete, and about events and actions that exist."""

import re
from typing import get_args

import pytest

from luftpause.core.scheduling import actions, events
from luftpause.core.scheduling.actions import Action
from luftpause.core.scheduling.events import Event


@pytest.mark.interpreted
def test_every_action_stands_in_the_table_with_what_ends_it() -> None:
    rows = re.findall(r"^\| `(\w+)` +\| (.+?) +\|$", actions.__doc__ or "", flags=re.MULTILINE)
    assert [name for name, _ in rows] == [action.__name__ for action in get_args(Action)]
    known = {kind.__name__ for kind in (*get_args(Action), *get_args(Event))}
    assert {name for _, ends in rows for name in re.findall(r"`(\w+)`", ends)} <= known


@pytest.mark.interpreted
def test_every_event_and_action_says_what_it_means() -> None:
    for kind in (*get_args(Event), *get_args(Action)):
        assert kind.__doc__, kind
        assert kind.__module__ in {actions.__name__, events.__name__}
