"""The tables of what ends an action: complete, and about events and actions that exist."""

import re
from typing import get_args

import pytest

from luftpause.core.scheduling import actions, events
from luftpause.core.scheduling.actions import Action
from luftpause.core.scheduling.events import Event
from luftpause.core.scheduling.residency import actions as model_actions
from luftpause.core.scheduling.residency import events as model_events


@pytest.mark.interpreted
def test_every_action_stands_in_a_table_with_what_ends_it() -> None:
    text = f"{actions.__doc__}\n{model_actions.__doc__}"
    rows = re.findall(r"^\| `(\w+)` +\| (.+?) +\|$", text, flags=re.MULTILINE)
    assert [name for name, _ in rows] == [action.__name__ for action in get_args(Action)]
    known = {kind.__name__ for kind in (*get_args(Action), *get_args(Event))}
    assert {name for _, ends in rows for name in re.findall(r"`(\w+)`", ends)} <= known


@pytest.mark.interpreted
def test_every_event_and_action_says_what_it_means() -> None:
    rooms = {each.__name__ for each in (actions, events, model_actions, model_events)}
    for kind in (*get_args(Event), *get_args(Action)):
        assert kind.__doc__, kind
        assert kind.__module__ in rooms
